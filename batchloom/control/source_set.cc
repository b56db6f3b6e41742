// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/control/for_each_number.h"
#include "batchloom/control/split_keying.h"

namespace batchloom::control {
namespace {

sources::SourceFiles files_of(const SourceConfig& source, const ShardOpener& opener,
                              const std::string& index_folder) {
  sources::SourceFiles files{
      .name = source.name, .shards = {}, .rules = opener.rules(), .index_folder = index_folder};
  for (const std::string& path : source.paths) files.shards.push_back(opener.indexed_file(path));
  return files;
}

construction::CutRule cut_rule_of(const StepConfig& step) {
  const auto over_length = [&] {
    switch (step.over_length) {
      case OverLength::kSplit: return construction::OverLength::kSplit;
      case OverLength::kTruncate: return construction::OverLength::kTruncate;
      case OverLength::kDrop: return construction::OverLength::kDrop;
    }
    return construction::OverLength::kSplit;
  };
  return {.max_sample_tokens = step.max_sample_tokens, .over_length = over_length()};
}

Result<sources::FileStamp> stamp_in_sight(const std::string& file, sources::FileCalls* calls) {
  const sources::FileCalls::Mark mark(calls, sources::FileCallStage::kLook, file);
  return sources::stamp_of(file);
}

}  // namespace

Result<std::vector<ShardOpener>> make_openers(const PipelineConfig& config,
                                              const sources::Tokenizer& tokenizer) {
  std::vector<ShardOpener> openers;
  for (const SourceConfig& source : config.sources) {
    BL_ASSIGN_OR_RETURN(ShardOpener opener, ShardOpener::create(source, config.image, tokenizer));
    openers.push_back(std::move(opener));
  }
  return openers;
}

Result<std::vector<UnindexedShard>> unindexed_shards(const PipelineConfig& config,
                                                     std::span<const ShardOpener> openers,
                                                     const std::string& index_folder,
                                                     sources::FileCalls* calls) {
  std::vector<UnindexedShard> unindexed;
  for (std::uint32_t i = 0; i < config.sources.size(); ++i) {
    const SourceConfig& source = config.sources[i];
    const sources::SourceFiles files = files_of(source, openers[i], index_folder);
    for (std::size_t shard = 0; shard < files.shards.size(); ++shard) {
      BL_ASSIGN_OR_RETURN(const auto found,
                          sources::open_indexed_shard(files, files.shards[shard], calls));
      if (found.index != nullptr) continue;
      unindexed.push_back({model::SourceId(i), source.paths[shard], found.no_index});
    }
  }
  return unindexed;
}

Result<std::vector<UnkeyedShard>> unkeyed_shards(const PipelineConfig& config,
                                                 std::span<const ShardOpener> openers,
                                                 const std::string& index_folder,
                                                 sources::FileCalls* calls) {
  std::vector<UnkeyedShard> unkeyed;
  for (std::size_t i = 0; i < config.sources.size(); ++i) {
    const SourceConfig& source = config.sources[i];
    if (!has_split_keys(source)) continue;
    BL_ASSIGN_OR_RETURN(SplitKeying made, SplitKeying::create(source, openers[i], index_folder));
    const auto keying = std::make_shared<const SplitKeying>(std::move(made));
    BL_ASSIGN_OR_RETURN(const auto records, sources::RecordSource::open(
                                                files_of(source, openers[i], index_folder), calls));
    for (const sources::IndexedShard& shard : records->shards()) {
      const auto keys = keying->open(shard);
      if (keys.is_ok()) continue;
      const bool may_be_made = keys.is(ErrorKind::kNotFound) || keys.is(ErrorKind::kCorruption);
      if (!may_be_made) return keys.status();
      unkeyed.push_back({keying, shard});
    }
  }
  return unkeyed;
}

SourceSet::SourceSet(const PipelineConfig& config, std::span<const ShardOpener> openers)
    : config_(config), openers_(openers), rule_(cut_rule_of(config.step)) {}

Result<std::unique_ptr<SourceSet>> SourceSet::open(const PipelineConfig& config,
                                                   std::span<const ShardOpener> openers,
                                                   const ShardLooks& looks) {
  std::unique_ptr<SourceSet> set(new SourceSet(config, openers));
  const std::size_t count = config.sources.size();
  set->sources_.resize(count);
  std::vector<std::optional<SourceSplit>> splits(count);
  const auto open_one = [&](std::size_t i) {
    const SourceConfig& source = config.sources[i];
    BL_ASSIGN_OR_RETURN(
        set->sources_[i],
        sources::RecordSource::open(files_of(source, openers[i], looks.index_folder), looks.calls));
    BL_ASSIGN_OR_RETURN(splits[i], SourceSplit::open(config, source, openers[i], looks.index_folder,
                                                     *set->sources_[i]));
    return Status::ok();
  };
  BL_RETURN_IF_ERROR(for_each_number(looks.runtime, looks.threads, count, open_one));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t records = splits[i]->takes_part() ? set->sources_[i]->records() : 0;
    set->names_.push_back({config.sources[i].name, records});
    set->splits_.push_back(*std::move(splits[i]));
  }
  return set;
}

Result<std::uint32_t> SourceSet::tokens(model::SourceId source, model::RecordIndex record) {
  BL_ASSIGN_OR_RETURN(const bool counts, splits_[source.value].has(record));
  if (!counts) return 0U;
  BL_ASSIGN_OR_RETURN(const std::uint32_t tokens, sources_[source.value]->tokens(record));
  return construction::used_tokens(rule_, tokens);
}

Result<std::vector<std::uint32_t>> SourceSet::patches_of(const planning::Part& part) const {
  std::vector<std::uint32_t> patches;
  const ShardOpener& opener = openers_[part.id.source.value];
  if (!opener.pictures().wanted() || part.first_position != 0) return patches;
  const sources::RecordSource& source = *sources_[part.id.source.value];
  const sources::ShardRecord place = source.locate(part.id.index);
  BL_ASSIGN_OR_RETURN(const sources::RecordPayload payload,
                      source.shards()[place.shard.value].index->payload(place.record));
  const std::uint32_t merge = opener.pictures().rules.merge;
  patches.push_back(
      merge * merge *
      sources::picture_tokens(payload.ids, opener.picture_begin(), opener.pictures().token));
  return patches;
}

Result<model::SampleMeta> SourceSet::describe(const planning::Part& part) {
  const sources::RecordSource& source = *sources_[part.id.source.value];
  sources::DrawnPart drawn{
      .id = part.id, .tokens = part.tokens, .first_position = part.first_position};
  BL_ASSIGN_OR_RETURN(model::SampleMeta meta, source.describe(drawn));
  BL_ASSIGN_OR_RETURN(meta.image_patches, patches_of(part));
  if (rule_.over_length != construction::OverLength::kTruncate) return meta;
  BL_ASSIGN_OR_RETURN(const std::uint32_t tokens, source.tokens(part.id.index));
  if (tokens == part.tokens) return meta;
  // Truncated: nothing follows its last token, which so has no label.
  if (--drawn.tokens == 0) {
    meta.valid_labels = 0;
    return meta;
  }
  BL_ASSIGN_OR_RETURN(const model::SampleMeta shorter, source.describe(drawn));
  meta.valid_labels = shorter.valid_labels;
  return meta;
}

Result<FileFingerprint> SourceSet::fingerprint_of(model::SourceId source, const std::string& path,
                                                  sources::FilePool& pool,
                                                  sources::FileCalls* calls,
                                                  const CallOptions& call) const {
  FileFingerprint fingerprint{.path = path};
  Digest digest;
  for (const std::string& file : opener(source).files(path)) {
    BL_ASSIGN_OR_RETURN(const sources::FileStamp stamp, stamp_in_sight(file, calls));
    const auto reader = pool.reader(file, stamp);
    BL_ASSIGN_OR_RETURN(const std::uint64_t ends, sources::ends_checksum(*reader, call));
    fingerprint.size_bytes += stamp.size_bytes;
    digest.add_int(stamp.size_bytes);
    digest.add_int(ends);
  }
  fingerprint.fingerprint = digest.value();
  return fingerprint;
}

Result<std::vector<std::vector<FileFingerprint>>> SourceSet::fingerprints(
    sources::FilePool& pool, const ShardLooks& looks, const CallOptions& call) const {
  std::vector<std::vector<FileFingerprint>> all;
  std::vector<std::pair<std::uint32_t, std::size_t>> places;  // Of each file's in `all`.
  for (std::uint32_t i = 0; i < config_.sources.size(); ++i) {
    const std::size_t files = config_.sources[i].paths.size();
    all.emplace_back(files);
    for (std::size_t file = 0; file < files; ++file) places.emplace_back(i, file);
  }
  const auto look_at = [&](std::size_t number) {
    const auto [source, file] = places[number];
    BL_ASSIGN_OR_RETURN(all[source][file],
                        fingerprint_of(model::SourceId(source), config_.sources[source].paths[file],
                                       pool, looks.calls, call));
    return Status::ok();
  };
  BL_RETURN_IF_ERROR(for_each_number(looks.runtime, looks.threads, places.size(), look_at));
  return all;
}

}  // namespace batchloom::control
