// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/prepared_sources.h"

#include <algorithm>
#include <map>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/base/mutex.h"

namespace batchloom::control {
namespace {

/// Shards to be indexed, taken one by one by several threads.
class IndexQueue {
 public:
  IndexQueue(std::vector<UnindexedShard> shards, const IndexingOptions& options)
      : shards_(std::move(shards)), options_(options) {}

  const UnindexedShard* take() {
    const MutexLock lock(mutex_);
    return failed_.is_ok() && next_ < shards_.size() ? &shards_[next_++] : nullptr;
  }

  void done(const UnindexedShard& shard, const Result<sources::SidecarTotals>& totals) {
    const MutexLock lock(mutex_);
    if (!totals.is_ok()) {
      if (failed_.is_ok()) failed_ = totals.status().with_context("indexing " + shard.path);
      return;
    }
    done_[static_cast<std::size_t>(&shard - shards_.data())] = {
        .path = shard.path, .why = std::string(shard.why.message()), .totals = *totals};
    for (; done_.contains(told_); ++told_) {
      if (options_.on_shard) options_.on_shard(done_[told_]);
    }
  }

  Status failed() const {
    const MutexLock lock(mutex_);
    return failed_;
  }
  std::size_t size() const { return shards_.size(); }

 private:
  const std::vector<UnindexedShard> shards_;
  const IndexingOptions& options_;
  mutable Mutex mutex_;
  std::size_t next_ BL_GUARDED_BY(mutex_) = 0;
  std::map<std::size_t, ShardIndexed> done_ BL_GUARDED_BY(mutex_);
  std::size_t told_ BL_GUARDED_BY(mutex_) = 0;  // All before were told of.
  Status failed_ BL_GUARDED_BY(mutex_);
};

}  // namespace

PreparedSources::PreparedSources(const PipelineConfig& config, Runtime& runtime)
    : config_(config), pool_(runtime, {}) {}

Result<std::unique_ptr<PreparedSources>> PreparedSources::open(const PipelineConfig& config,
                                                               objstore::FileOps& files,
                                                               Runtime& runtime,
                                                               const IndexingOptions& options,
                                                               const CallOptions& call) {
  std::unique_ptr<PreparedSources> prepared(new PreparedSources(config, runtime));
  BL_ASSIGN_OR_RETURN(prepared->tokenizer_, make_tokenizer(config.tokens));
  BL_ASSIGN_OR_RETURN(prepared->openers_, make_openers(config, *prepared->tokenizer_));
  BL_RETURN_IF_ERROR(prepared->index_all(files, runtime, options, call));
  BL_ASSIGN_OR_RETURN(prepared->set_, SourceSet::open(config, prepared->openers_, options.folder));
  prepared->fetcher_ = std::make_unique<RecordFetcher>(
      runtime, *prepared->set_, prepared->pool_,
      RecordFetcherOptions{.vocab = config.tokens.vocab,
                           .long_records_bytes = config.limits.memory_bytes / 8});
  BL_ASSIGN_OR_RETURN(const auto fingerprints, prepared->set_->fingerprints(prepared->pool_, call));
  BL_ASSIGN_OR_RETURN(prepared->membership_, Membership::create(config, fingerprints));
  return prepared;
}

Status PreparedSources::index_all(objstore::FileOps& files, Runtime& runtime,
                                  const IndexingOptions& options, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto shards, unindexed_shards(config_, openers_, options.folder));
  IndexQueue queue(std::move(shards), options);
  const auto work = [&](const std::stop_token&) {
    while (const UnindexedShard* shard = queue.take()) {
      queue.done(*shard, index_shard(openers_[shard->source.value], shard->path,
                                     {.files = files, .folder = options.folder}, pool_, call));
    }
  };
  const std::size_t threads = std::min<std::size_t>(std::max(options.workers, 1U), queue.size());
  std::vector<std::unique_ptr<Task>> tasks;
  for (std::size_t i = 0; i < threads; ++i) tasks.push_back(runtime.spawn("indexer", work));
  for (const auto& task : tasks) task->join();
  return queue.failed();
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
