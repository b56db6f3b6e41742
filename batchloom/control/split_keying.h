// SPDX-License-Identifier: Apache-2.0
// What split keys are made of, and making them.
//
//  1. A source that is divided by content or by a field has a file of keys beside each index
//     (sources/split_keys.h): planning asks for one per record, and takes no shard to answer.
//  2. A key of content is made of the ids that the index keeps; of a Megatron shard, which keeps
//     its ids itself, by one pass over its data.
//  3. A key of a field is a hash of its text, made by one pass over the shard, in which nothing is
//     tokenized. A record that is good without the field is an error that names it: nobody could
//     tell which split it belongs to.
//  4. Neither source nor seed goes into a key. So records that are equal, in content or field, are
//     of one split in all sources that have the same shares.
#pragma once

#include <memory>
#include <string>

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/shard_indexer.h"
#include "batchloom/control/shard_opener.h"
#include "batchloom/sources/file_pool.h"
#include "batchloom/sources/record_source.h"
#include "batchloom/sources/split_keys.h"

namespace batchloom::control {

/// Whether its records go to splits by keys that lie beside its indexes.
bool has_split_keys(const SourceConfig& source);

/// Makes and opens the keys of one source's shards. `source` and `opener` outlive it. Immutable;
/// thread-safe.
class SplitKeying {
 public:
  /// `invalid` where the source's format cannot read the field. Precondition: has_split_keys().
  static Result<SplitKeying> create(const SourceConfig& source, const ShardOpener& opener,
                                    std::string index_folder);

  /// As SplitKeys::open(). Precondition: the shard has an index.
  Result<std::unique_ptr<sources::SplitKeys>> open(const sources::IndexedShard& shard) const;

  /// Makes them, whatever there is. Blocks for as long as a pass over index or shard takes.
  /// `invalid`: a record without the field. Else as readers and writers have it; `conflict` where
  /// the shard is not the one that was indexed.
  Status make(const sources::IndexedShard& shard, objstore::FileOps& files, sources::FilePool& pool,
              const CallOptions& call) const;

 private:
  SplitKeying(const SourceConfig& source, const ShardOpener& opener, std::string index_folder)
      : source_(source), opener_(opener), index_folder_(std::move(index_folder)) {}

  Result<sources::SplitKeysHeader> header_of(const sources::IndexedShard& shard) const;
  std::string path_of(const sources::IndexedShard& shard) const;
  bool reads_shard() const;
  /// Of what keys are made, as records of ids.
  Result<std::unique_ptr<sources::ShardReader>> open_shard(const sources::IndexedShard& shard,
                                                           sources::FilePool& pool,
                                                           const CallOptions& call) const;

  const SourceConfig& source_;
  const ShardOpener& opener_;
  std::string index_folder_;
  // Of a field: its text's bytes are a record's ids.
  std::unique_ptr<const sources::Tokenizer> bytes_;
  std::unique_ptr<const ShardOpener> field_opener_;
};

}  // namespace batchloom::control
