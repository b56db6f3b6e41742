// SPDX-License-Identifier: Apache-2.0
// The records of all shards of a source under one numbering: shard by shard, in their order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/sources/file_pool.h"
#include "batchloom/sources/sidecar_index.h"

namespace batchloom::sources {

/// A source, as a pipeline's file has it.
struct SourceFiles {
  std::string name;
  /// Paths, by ShardIndex.
  std::vector<std::string> shards;
  RecordRules rules;
  /// Where the indexes lie; empty: each beside its shard.
  std::string index_folder = {};
};

/// A shard as it is now, and its index.
struct IndexedShard {
  std::string path;
  FileStamp stamp;
  std::shared_ptr<const SidecarIndex> index;  ///< Null where none can be used.
  /// Why not: `not_found` where it is missing or outdated, `corruption` where it is damaged. Then
  /// it is to be made anew.
  Status no_index;
};

/// Looks at a shard of the source, and opens its index. Blocks. Errors: those of stamp_of() for the
/// shard, and those of SidecarIndex::open() that no new index would end. `calls` is told of it.
Result<IndexedShard> open_indexed_shard(const SourceFiles& files, const std::string& path,
                                        FileCalls* calls = nullptr);

/// Where a record of a source is.
struct ShardRecord {
  model::ShardIndex shard;
  std::uint64_t record = 0;  ///< Within its shard.

  friend bool operator==(const ShardRecord&, const ShardRecord&) = default;
};

/// A stretch of a record that was drawn.
struct DrawnPart {
  model::SampleId id;
  std::uint32_t tokens = 0;          ///< At least 1.
  std::uint64_t first_position = 0;  ///< In the record, of the part's token 0.
};

/// Immutable; thread-safe. Holds no file open, and some 600 bytes per shard until its first record
/// is asked for. Calls block for as long as the disk does, with the first record of a block or of a
/// shard. Errors about an index are those of SidecarIndex.
class RecordSource {
 public:
  /// Opens all shards. `not_found` where some have no index that can be used: says how many, and
  /// why the first. Else as open_indexed_shard().
  static Result<std::unique_ptr<RecordSource>> open(const SourceFiles& files,
                                                    FileCalls* calls = nullptr);

  const std::string& name() const { return name_; }
  std::uint64_t records() const { return totals_.records; }
  const SidecarTotals& totals() const { return totals_; }
  /// By ShardIndex; all have an index.
  const std::vector<IndexedShard>& shards() const { return shards_; }

  /// Precondition of this and of tokens(): `record` is below records().
  ShardRecord locate(model::RecordIndex record) const;
  /// Of the whole record; 0 for an empty one and for a bad one.
  Result<std::uint32_t> tokens(model::RecordIndex record) const;
  Result<IndexedRecord> record(model::RecordIndex record) const;

  /// What planning wants to know of a part. Its source's number is not looked at. `invalid`: a part
  /// of a record that is not there, or beyond the record's end; a part of a record of which only
  /// some labels count, where the index holds no loss intervals.
  Result<model::SampleMeta> describe(const DrawnPart& part) const;

  /// A reader of a shard's bytes. The first one compares the shard's ends with what was indexed;
  /// `conflict` where they differ, and else as FilePool::reader(). `pool` must outlive the reader.
  Result<std::unique_ptr<ByteReader>> open_shard(model::ShardIndex shard, FilePool& pool,
                                                 const CallOptions& call) const;

 private:
  RecordSource() = default;

  Result<std::uint32_t> labels_of(const DrawnPart& part, const IndexedRecord& record,
                                  const ShardRecord& place) const;

  std::string name_;
  std::vector<IndexedShard> shards_;
  std::vector<std::uint64_t> ends_;  ///< By shard: the first record that is not of it.
  std::unique_ptr<std::atomic<bool>[]> content_checked_;  ///< By shard.
  SidecarTotals totals_;
};

}  // namespace batchloom::sources
