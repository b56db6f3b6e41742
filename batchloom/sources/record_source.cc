// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/record_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace batchloom::sources {
namespace {

bool may_be_made_anew(const Status& status) {
  return status.is(ErrorKind::kNotFound) || status.is(ErrorKind::kCorruption);
}

/// How many labels of tokens [begin, end) of a record count: that of token i is id i + 1.
std::uint32_t labels_within(const LossIntervals& loss, std::uint32_t begin, std::uint32_t end) {
  std::uint32_t labels = 0;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    const LossInterval interval = loss[i];
    const std::uint32_t first = std::max(interval.begin, begin + 1);
    const std::uint32_t last = std::min(interval.end, end == UINT32_MAX ? end : end + 1);
    if (first < last) labels += last - first;
  }
  return labels;
}

}  // namespace

Result<IndexedShard> open_indexed_shard(const SourceFiles& files, const std::string& path,
                                        FileCalls* calls) {
  IndexedShard shard{.path = path, .stamp = {}, .index = nullptr, .no_index = {}};
  {
    const FileCalls::Mark mark(calls, FileCallStage::kLook, path);
    BL_ASSIGN_OR_RETURN(shard.stamp, stamp_of(path));
  }
  const FileCalls::Mark mark(calls, FileCallStage::kOpenIndex, path);
  auto index = SidecarIndex::open(sidecar_path(path, files.index_folder));
  shard.no_index = index.status();
  if (index.is_ok()) {
    shard.no_index = check_current((*index)->header(), path, shard.stamp, files.rules);
    if (shard.no_index.is_ok()) shard.index = *std::move(index);
  }
  if (shard.index == nullptr && !may_be_made_anew(shard.no_index)) return shard.no_index;
  return shard;
}

Result<std::unique_ptr<RecordSource>> RecordSource::open(const SourceFiles& files,
                                                         FileCalls* calls) {
  std::unique_ptr<RecordSource> source(new RecordSource);
  source->name_ = files.name;
  std::size_t without_index = 0;
  Status first;
  for (const std::string& path : files.shards) {
    BL_ASSIGN_OR_RETURN(IndexedShard shard, open_indexed_shard(files, path, calls));
    if (shard.index == nullptr) {
      if (without_index++ == 0) first = shard.no_index;
      continue;
    }
    const SidecarTotals& more = shard.index->totals();
    SidecarTotals& totals = source->totals_;
    totals.records += more.records;
    totals.tokens += more.tokens;
    totals.valid_labels += more.valid_labels;
    totals.empty_records += more.empty_records;
    totals.bad_records += more.bad_records;
    source->shards_.push_back(std::move(shard));
    source->ends_.push_back(totals.records);
  }
  if (without_index > 0) {
    return Status::not_found(fmt::format(
        "source '{}': {} of {} shards have no index that can be used; index them. The first: {}",
        files.name, without_index, files.shards.size(), first.message()));
  }
  source->content_checked_ = std::make_unique<std::atomic<bool>[]>(source->shards_.size());
  return source;
}

ShardRecord RecordSource::locate(model::RecordIndex record) const {
  // Shards without records end where the one before does, and so are passed over.
  const auto end = std::ranges::upper_bound(ends_, record.value);
  const auto shard = static_cast<std::uint32_t>(end - ends_.begin());
  const std::uint64_t begin = shard == 0 ? 0 : ends_[shard - 1];
  return {.shard = model::ShardIndex(shard), .record = record.value - begin};
}

Result<IndexedRecord> RecordSource::record(model::RecordIndex record) const {
  const ShardRecord place = locate(record);
  return shards_[place.shard.value].index->record(place.record);
}

Result<std::uint32_t> RecordSource::tokens(model::RecordIndex number) const {
  BL_ASSIGN_OR_RETURN(const IndexedRecord indexed, record(number));
  return indexed.size.tokens;
}

Result<model::SampleMeta> RecordSource::describe(const DrawnPart& part) const {
  const auto refuse = [&](std::string_view what) {
    return Status::invalid(
        fmt::format("source '{}': sample {}: {}", name_, to_string(part.id), what));
  };
  if (part.id.index.value >= records()) {
    return refuse(fmt::format("there is no such record; it has {}", records()));
  }
  const ShardRecord place = locate(part.id.index);
  BL_ASSIGN_OR_RETURN(const IndexedRecord indexed, record(part.id.index));
  const std::uint32_t tokens = indexed.size.tokens;
  if (part.tokens == 0 || part.first_position >= tokens ||
      part.tokens > tokens - part.first_position) {
    return refuse(fmt::format("{} tokens from {} on of a record of {}", part.tokens,
                              part.first_position, tokens));
  }
  model::SampleMeta meta;
  meta.id = part.id;
  meta.tokens = part.tokens;
  meta.first_position = part.first_position;
  meta.place = {.shard = place.shard,
                .offset_bytes = indexed.size.place.offset_bytes,
                .size_bytes = indexed.size.place.size_bytes};
  BL_ASSIGN_OR_RETURN(meta.valid_labels, labels_of(part, indexed, place));
  return meta;
}

Result<std::uint32_t> RecordSource::labels_of(const DrawnPart& part, const IndexedRecord& record,
                                              const ShardRecord& place) const {
  const std::uint32_t tokens = record.size.tokens;
  if (part.tokens == tokens) return record.size.valid_labels;
  const auto begin = static_cast<std::uint32_t>(part.first_position);
  const std::uint32_t end = begin + part.tokens;
  // All labels count, or none does.
  if (record.size.valid_labels == 0) return 0;
  if (record.size.valid_labels == tokens - 1) return part.tokens - (end == tokens ? 1 : 0);
  const SidecarIndex& index = *shards_[place.shard.value].index;
  if (!index.header().contents.loss_intervals) {
    return Status::invalid(fmt::format(
        "source '{}': sample {}: the loss counts {} labels of a record of {} tokens, and {} does "
        "not say which: index it again with loss intervals",
        name_, to_string(part.id), record.size.valid_labels, tokens, index.path()));
  }
  BL_ASSIGN_OR_RETURN(const RecordPayload payload, index.payload(place.record));
  return labels_within(payload.loss, begin, end);
}

Result<std::unique_ptr<ByteReader>> RecordSource::open_shard(model::ShardIndex number,
                                                             FilePool& pool,
                                                             const CallOptions& call) const {
  const IndexedShard& shard = shards_[number.value];
  std::unique_ptr<ByteReader> reader = pool.reader(shard.path, shard.stamp);
  std::atomic<bool>& checked = content_checked_[number.value];
  if (!checked.load(std::memory_order_relaxed)) {
    BL_RETURN_IF_ERROR(shard.index->check_ends(*reader, call));
    checked.store(true, std::memory_order_relaxed);
  }
  return reader;
}

}  // namespace batchloom::sources
