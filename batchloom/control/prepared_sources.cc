// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/prepared_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/base/mutex.h"
#include "batchloom/control/for_each_number.h"

namespace batchloom::control {
namespace {

/// Tells of shards in their order, in whatever order they come.
class IndexReport {
 public:
  explicit IndexReport(const IndexingOptions& options) : options_(options) {}

  void done(std::size_t number, ShardIndexed shard) {
    const MutexLock lock(mutex_);
    done_[number] = std::move(shard);
    for (; done_.contains(told_); ++told_) {
      if (options_.on_shard) options_.on_shard(done_[told_]);
    }
  }

 private:
  const IndexingOptions& options_;
  Mutex mutex_;
  std::map<std::size_t, ShardIndexed> done_ BL_GUARDED_BY(mutex_);
  std::size_t told_ BL_GUARDED_BY(mutex_) = 0;  // All before were told of.
};

/// What a tokenizer started for the indexing ends with it.
class BatchWorkers {
 public:
  explicit BatchWorkers(const sources::BatchTokenizer* tokenizer) : tokenizer_(tokenizer) {}
  ~BatchWorkers() {
    if (tokenizer_ != nullptr) tokenizer_->stop();
  }
  BatchWorkers(const BatchWorkers&) = delete;
  BatchWorkers& operator=(const BatchWorkers&) = delete;

  Status start(std::size_t threads) const {
    return tokenizer_->start(static_cast<std::uint32_t>(threads));
  }

 private:
  const sources::BatchTokenizer* tokenizer_;
};

ShardLooks looks_of(Runtime& runtime, const IndexingOptions& options) {
  return {.runtime = runtime,
          .threads = options.workers,
          .index_folder = options.folder,
          .calls = options.calls};
}

}  // namespace

PreparedSources::PreparedSources(const PipelineConfig& config, Runtime& runtime,
                                 sources::FileCalls* calls)
    : config_(config), pool_(runtime, {.calls = calls}) {}

Result<std::unique_ptr<PreparedSources>> PreparedSources::open(const PipelineConfig& config,
                                                               objstore::FileOps& files,
                                                               Runtime& runtime,
                                                               const IndexingOptions& options,
                                                               const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto prepared, begin(config, runtime, options));
  // Where all is indexed, as it mostly is, each file is looked at once.
  const Status opened = prepared->open_set(runtime, options);
  if (opened.is(ErrorKind::kNotFound) || opened.is(ErrorKind::kCorruption)) {
    BL_RETURN_IF_ERROR(prepared->index_all(files, runtime, options, call));
    BL_RETURN_IF_ERROR(prepared->key_all(files, runtime, options, call));
    BL_RETURN_IF_ERROR(prepared->open_set(runtime, options));
  } else if (!opened.is_ok()) {
    return opened;
  }
  BL_RETURN_IF_ERROR(prepared->finish(runtime, options, call));
  return prepared;
}

Result<std::unique_ptr<PreparedSources>> PreparedSources::open_indexed(
    const PipelineConfig& config, Runtime& runtime, const IndexingOptions& options,
    const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto prepared, begin(config, runtime, options));
  BL_ASSIGN_OR_RETURN(const bool indexed, prepared->is_indexed(options));
  if (!indexed) return std::unique_ptr<PreparedSources>();
  BL_RETURN_IF_ERROR(prepared->open_set(runtime, options));
  BL_RETURN_IF_ERROR(prepared->finish(runtime, options, call));
  return prepared;
}

Result<std::unique_ptr<PreparedSources>> PreparedSources::begin(const PipelineConfig& config,
                                                                Runtime& runtime,
                                                                const IndexingOptions& options) {
  std::unique_ptr<PreparedSources> prepared(new PreparedSources(config, runtime, options.calls));
  BL_ASSIGN_OR_RETURN(prepared->tokenizer_, make_tokenizer(config.tokens, options.python));
  BL_ASSIGN_OR_RETURN(prepared->openers_, make_openers(config, *prepared->tokenizer_));
  return prepared;
}

Result<bool> PreparedSources::is_indexed(const IndexingOptions& options) const {
  BL_ASSIGN_OR_RETURN(const auto unindexed,
                      unindexed_shards(config_, openers_, options.folder, options.calls));
  if (!unindexed.empty()) return false;
  BL_ASSIGN_OR_RETURN(const auto unkeyed,
                      unkeyed_shards(config_, openers_, options.folder, options.calls));
  return unkeyed.empty();
}

Status PreparedSources::open_set(Runtime& runtime, const IndexingOptions& options) {
  BL_ASSIGN_OR_RETURN(set_, SourceSet::open(config_, openers_, looks_of(runtime, options)));
  return Status::ok();
}

Status PreparedSources::finish(Runtime& runtime, const IndexingOptions& options,
                               const CallOptions& call) {
  fetcher_ = std::make_unique<RecordFetcher>(
      runtime, *set_, pool_,
      RecordFetcherOptions{.vocab = config_.tokens.vocab,
                           .patch_bytes = config_.image.rules.patch_bytes(),
                           .long_records_bytes = config_.limits.memory_bytes / 8});
  BL_ASSIGN_OR_RETURN(const auto fingerprints,
                      set_->fingerprints(pool_, looks_of(runtime, options), call));
  BL_ASSIGN_OR_RETURN(membership_, Membership::create(config_, fingerprints));
  return Status::ok();
}

Status PreparedSources::index_all(objstore::FileOps& files, Runtime& runtime,
                                  const IndexingOptions& options, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto shards,
                      unindexed_shards(config_, openers_, options.folder, options.calls));
  const auto with_batches = std::ranges::count_if(shards, [&](const UnindexedShard& shard) {
    return openers_[shard.source.value].batches() != nullptr;
  });
  // By this thread, which waits until all is done: workers end with the thread that started them.
  const auto workers =
      std::min<std::size_t>(std::max(options.workers, 1U), static_cast<std::size_t>(with_batches));
  const BatchWorkers batch_workers(tokenizer_->batches());
  if (workers > 0) BL_RETURN_IF_ERROR(batch_workers.start(workers));
  IndexReport report(options);
  return for_each_number(runtime, options.workers, shards.size(), [&](std::size_t i) {
    const UnindexedShard& shard = shards[i];
    const auto totals = index_shard(openers_[shard.source.value], shard.path,
                                    {.files = files, .folder = options.folder}, pool_, call);
    if (!totals.is_ok()) return totals.status().with_context("indexing " + shard.path);
    report.done(i,
                {.path = shard.path, .why = std::string(shard.why.message()), .totals = *totals});
    return Status::ok();
  });
}

Status PreparedSources::key_all(objstore::FileOps& files, Runtime& runtime,
                                const IndexingOptions& options, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto shards,
                      unkeyed_shards(config_, openers_, options.folder, options.calls));
  return for_each_number(runtime, options.workers, shards.size(), [&](std::size_t i) {
    const auto& [keying, shard] = shards[i];
    const Status made = keying->make(shard, files, pool_, call);
    return made.is_ok() ? made : made.with_context("split keys of " + shard.path);
  });
}

std::vector<std::uint64_t> PreparedSources::bad_records() const {
  std::vector<std::uint64_t> bad;
  for (std::uint32_t i = 0; i < config_.sources.size(); ++i) {
    bad.push_back(set_->source(model::SourceId(i)).totals().bad_records);
  }
  return bad;
}

Result<std::string> PreparedSources::first_bad_of(model::SourceId source, model::ShardIndex shard,
                                                  const CallOptions& call) {
  const sources::RecordSource& records = set_->source(source);
  const sources::SidecarIndex& index = *records.shards()[shard.value].index;
  std::uint64_t number = 0;
  for (;; ++number) {
    BL_ASSIGN_OR_RETURN(const auto indexed, index.record(number));
    if (indexed.is_bad) break;
  }
  BL_ASSIGN_OR_RETURN(auto file, records.open_shard(shard, pool_, call));
  BL_ASSIGN_OR_RETURN(const auto reader, set_->opener(source).open(std::move(file), pool_, call));
  sources::Record record;
  BL_ASSIGN_OR_RETURN(const auto bad, reader->read(number, call, record));
  if (bad) return bad->message;
  return fmt::format("{}: record {} (it can be read now: index it again)", reader->name(), number);
}

Result<std::optional<std::string>> PreparedSources::first_bad(model::SourceId source,
                                                              const CallOptions& call) {
  const auto& shards = set_->source(source).shards();
  for (std::uint32_t shard = 0; shard < shards.size(); ++shard) {
    if (shards[shard].index->totals().bad_records == 0) continue;
    BL_ASSIGN_OR_RETURN(std::string first, first_bad_of(source, model::ShardIndex(shard), call));
    return std::optional(std::move(first));
  }
  return std::optional<std::string>();
}

Status PreparedSources::check_shards(model::SourceId source, const CallOptions& call) {
  const sources::RecordSource& records = set_->source(source);
  const bool is_all_bad = records.totals().bad_records == records.records();
  for (std::uint32_t i = 0; i < records.shards().size(); ++i) {
    const sources::IndexedShard& shard = records.shards()[i];
    const sources::SidecarTotals& totals = shard.index->totals();
    const bool is_one_of_many = totals.records == 1 && !is_all_bad;
    if (totals.records == 0 || totals.bad_records < totals.records || is_one_of_many) continue;
    BL_ASSIGN_OR_RETURN(const std::string first, first_bad_of(source, model::ShardIndex(i), call));
    return Status::corruption(
        fmt::format("source '{}': {}: none of its {} records can be used: is it read in the right "
                    "way? The first: {}",
                    records.name(), shard.path, totals.records, first));
  }
  return Status::ok();
}

Status PreparedSources::check_bad_records(const CallOptions& call) {
  const std::vector<std::uint64_t> bad = bad_records();
  for (std::uint32_t i = 0; i < bad.size(); ++i) {
    const model::SourceId source(i);
    BL_RETURN_IF_ERROR(check_shards(source, call));
    if (bad[i] <= config_.limits.bad_records) continue;
    BL_ASSIGN_OR_RETURN(const auto first, first_bad(source, call));
    return Status::exhausted(fmt::format(
        "source '{}' has {} bad records of {}, and limits.bad_records allows {}; the first: {}",
        config_.sources[i].name, bad[i], set_->source(source).records(), config_.limits.bad_records,
        first.value_or("")));
  }
  return Status::ok();
}

std::vector<store::BatchOrigin::Source> PreparedSources::origins() const {
  std::vector<store::BatchOrigin::Source> origins;
  for (std::size_t i = 0; i < config_.sources.size(); ++i) {
    Digest digest;
    const sources::RecordRules rules = openers_[i].rules();
    digest.add_int(rules.tokenizer_digest);
    digest.add_int(rules.fields_digest);
    for (const auto& shard :
         set_->source(model::SourceId(static_cast<std::uint32_t>(i))).shards()) {
      digest.add_int(shard.index->header().shard.size_bytes);
      digest.add_int(shard.index->header().shard.ends_checksum);
    }
    origins.push_back({config_.sources[i].name, digest.value()});
  }
  return origins;
}

}  // namespace batchloom::control
