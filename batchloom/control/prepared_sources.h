// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/control/membership.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/pipeline_tokenizer.h"
#include "batchloom/control/record_fetcher.h"
#include "batchloom/control/shard_indexer.h"
#include "batchloom/control/source_set.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/sources/file_pool.h"

namespace batchloom::control {

/// What a shard's indexing came to.
struct ShardIndexed {
  std::string path;
  std::string why;  ///< "missing", or what was wrong with the one that there was.
  sources::SidecarTotals totals;
};

struct IndexingOptions {
  std::uint32_t workers = 2;
  std::string folder = {};             ///< Of indexes; empty: beside shards.
  sources::PythonOptions python = {};  ///< Of a tokenizer that is a function of Python.
  /// Called in the order of the shards, by one thread at a time.
  std::function<void(const ShardIndexed&)> on_shard = {};
  /// Told of every call to a file system, where it is there; it outlives the sources.
  sources::FileCalls* calls = nullptr;
};

/// The sources of a pipeline, ready to be planned and read.
class PreparedSources {
 public:
  /// Indexes what is not indexed, and makes split keys that are missing, several shards at once;
  /// opens all. `config`, `files` and `runtime` outlive it. Blocks for as long as that takes.
  /// Errors: those of index_shard() and SplitKeying::make(), naming the shard, of
  /// SourceSet::open(), and of settings that do not go together.
  static Result<std::unique_ptr<PreparedSources>> open(const PipelineConfig& config,
                                                       objstore::FileOps& files, Runtime& runtime,
                                                       const IndexingOptions& options,
                                                       const CallOptions& call);

  /// The same, and nothing is made: null where a shard has no index, or no split keys, that can be
  /// used.
  static Result<std::unique_ptr<PreparedSources>> open_indexed(const PipelineConfig& config,
                                                               Runtime& runtime,
                                                               const IndexingOptions& options,
                                                               const CallOptions& call);

  SourceSet& set() { return *set_; }
  const SourceSet& set() const { return *set_; }
  SampleFetcher& fetcher() { return *fetcher_; }
  const Membership& membership() const { return membership_; }
  /// The first record that a source's indexes call bad: why it is, looked at again. Nullopt where
  /// there is none. Blocks: may take a pass over its shard. Errors: those of reading it.
  Result<std::optional<std::string>> first_bad(model::SourceId source, const CallOptions& call);
  /// `corruption` for a shard of which all records are bad: it is read in the wrong way (one bad
  /// record alone in its shard is not, if the source has others). `exhausted` where a source has
  /// more bad ones than limits.bad_records allows. Both name the first. Blocks as first_bad(), and
  /// only then.
  Status check_bad_records(const CallOptions& call);
  /// By source, as indexes say it.
  std::vector<std::uint64_t> bad_records() const;

  /// What batch objects say of the sources: names, and a digest of what their records are.
  std::vector<store::BatchOrigin::Source> origins() const;

 private:
  PreparedSources(const PipelineConfig& config, Runtime& runtime, sources::FileCalls* calls);

  static Result<std::unique_ptr<PreparedSources>> begin(const PipelineConfig& config,
                                                        Runtime& runtime,
                                                        const IndexingOptions& options);
  /// Whether all is there that open() makes.
  Result<bool> is_indexed(const IndexingOptions& options) const;
  /// As SourceSet::open().
  Status open_set(Runtime& runtime, const IndexingOptions& options);
  /// Precondition: the set is open.
  Status finish(Runtime& runtime, const IndexingOptions& options, const CallOptions& call);
  Result<std::string> first_bad_of(model::SourceId source, model::ShardIndex shard,
                                   const CallOptions& call);
  Status check_shards(model::SourceId source, const CallOptions& call);
  /// With as many workers of Python as threads, where any of the shards needs them.
  Status index_all(objstore::FileOps& files, Runtime& runtime, const IndexingOptions& options,
                   const CallOptions& call);
  Status key_all(objstore::FileOps& files, Runtime& runtime, const IndexingOptions& options,
                 const CallOptions& call);

  const PipelineConfig& config_;
  sources::FilePool pool_;
  std::unique_ptr<sources::Tokenizer> tokenizer_;
  std::vector<ShardOpener> openers_;
  std::unique_ptr<SourceSet> set_;
  std::unique_ptr<RecordFetcher> fetcher_;
  Membership membership_;
};

}  // namespace batchloom::control
