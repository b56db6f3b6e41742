// SPDX-License-Identifier: Apache-2.0
// All sources of a pipeline, indexed: what planning asks of their records, and what a stream
// remembers of their files.
//
//  1. Each shard has a sidecar index; open() names those that have none that can be used.
//  2. A record counts where it is good, not empty, and of the run's split (source_split.h). What
//     does not count has no tokens, and the mixture goes on to the next.
//  3. A record's picture lies in its first part. Its ids in the index tell how many patches it has.
//  4. A record above max_sample_tokens is split, truncated or dropped as the pipeline says
//     (construction/record_cut.h); here are the lengths that come of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batchloom/construction/record_cut.h"
#include "batchloom/control/membership.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/shard_opener.h"
#include "batchloom/control/source_split.h"
#include "batchloom/control/split_keying.h"
#include "batchloom/planning/metadata.h"
#include "batchloom/sources/record_source.h"

namespace batchloom::control {

/// By whom shards and their indexes are looked at.
struct ShardLooks {
  Runtime& runtime;
  std::uint32_t threads = 1;            ///< Several files at once.
  std::string index_folder = {};        ///< Of indexes; empty: beside shards.
  sources::FileCalls* calls = nullptr;  ///< Told of each call, where it is there.
};

/// A shard that is to be indexed.
struct UnindexedShard {
  model::SourceId source;
  std::string path;  ///< As SourceConfig has it.
  Status why;        ///< What is wrong with the index that there is, if there is one.
};

/// Those of all sources, in order. Blocks; `calls` is told of it where it is there. Errors: a shard
/// that is missing or cannot be read.
Result<std::vector<UnindexedShard>> unindexed_shards(const PipelineConfig& config,
                                                     std::span<const ShardOpener> openers,
                                                     const std::string& index_folder,
                                                     sources::FileCalls* calls);

/// A shard that has an index, and is to get split keys.
struct UnkeyedShard {
  std::shared_ptr<const SplitKeying> keying;
  sources::IndexedShard shard;
};

/// Those of all sources, in order. Blocks; `calls` is told of it where it is there. Errors: a shard
/// that is missing or cannot be read. Precondition: all shards are indexed.
Result<std::vector<UnkeyedShard>> unkeyed_shards(const PipelineConfig& config,
                                                 std::span<const ShardOpener> openers,
                                                 const std::string& index_folder,
                                                 sources::FileCalls* calls);

/// The openers of all sources. `tokenizer` outlives them. `invalid` as ShardOpener::create().
Result<std::vector<ShardOpener>> make_openers(const PipelineConfig& config,
                                              const sources::Tokenizer& tokenizer);

/// Immutable; thread-safe.
class SourceSet final : public planning::Metadata {
 public:
  /// `config` and `openers` outlive it. `not_found` where shards have no index or no split keys
  /// that can be used; else as RecordSource::open().
  static Result<std::unique_ptr<SourceSet>> open(const PipelineConfig& config,
                                                 std::span<const ShardOpener> openers,
                                                 const ShardLooks& looks);

  std::span<const planning::SourceRecords> sources() const override { return names_; }
  Result<std::uint32_t> tokens(model::SourceId source, model::RecordIndex record) override;
  Result<model::SampleMeta> describe(const planning::Part& part) override;

  const sources::RecordSource& source(model::SourceId source) const {
    return *sources_[source.value];
  }
  const ShardOpener& opener(model::SourceId source) const { return openers_[source.value]; }
  const construction::CutRule& cut_rule() const { return rule_; }

  /// For Membership::create(): all files of all sources, as they are now. Reads their ends.
  Result<std::vector<std::vector<FileFingerprint>>> fingerprints(sources::FilePool& pool,
                                                                 const ShardLooks& looks,
                                                                 const CallOptions& call) const;

 private:
  Result<FileFingerprint> fingerprint_of(model::SourceId source, const std::string& path,
                                         sources::FilePool& pool, sources::FileCalls* calls,
                                         const CallOptions& call) const;
  SourceSet(const PipelineConfig& config, std::span<const ShardOpener> openers);

  /// By picture that begins in the part: only the first has one.
  Result<std::vector<std::uint32_t>> patches_of(const planning::Part& part) const;

  const PipelineConfig& config_;
  const std::span<const ShardOpener> openers_;
  const construction::CutRule rule_;
  std::vector<std::unique_ptr<sources::RecordSource>> sources_;
  std::vector<planning::SourceRecords> names_;
  std::vector<SourceSplit> splits_;
};

}  // namespace batchloom::control
