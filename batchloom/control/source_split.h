// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/shard_opener.h"
#include "batchloom/sources/record_source.h"
#include "batchloom/sources/split_keys.h"

namespace batchloom::control {

/// Which records of a source are of the run's split. Every record has a place from 0 to 1, and
/// splits have stretches of it as large as their shares, in the order of their names: so no record
/// is of two splits, and none is of none. By number a place is a hash of the source's name and the
/// record's number; else its split key (split_keying.h). Immutable; thread-safe.
class SourceSplit {
 public:
  /// Opens the keys, if it takes any. `records` outlives it. `not_found` where a shard's are
  /// missing; else as SplitKeys::open().
  static Result<SourceSplit> open(const PipelineConfig& config, const SourceConfig& source,
                                  const ShardOpener& opener, const std::string& index_folder,
                                  const sources::RecordSource& records);

  /// Whether the split has a share of the source.
  bool takes_part() const { return end_ > begin_; }
  /// As SplitKeys::key(). Precondition: there is such a record.
  Result<bool> has(model::RecordIndex record) const;

 private:
  explicit SourceSplit(const sources::RecordSource& records) : records_(&records) {}

  const sources::RecordSource* records_;
  // Of all_, the stretch of the run's split.
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t all_ = 0;
  std::uint64_t name_hash_ = 0;
  std::vector<std::unique_ptr<sources::SplitKeys>> keys_;  ///< By shard; empty: by number.
};

}  // namespace batchloom::control
