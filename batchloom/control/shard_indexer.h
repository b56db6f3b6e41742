// SPDX-License-Identifier: Apache-2.0
// Making the index of a shard: each record is read once, and its ids kept where reading them again
// would take a tokenizer. What is known then is known for good: bad records, empty ones, counts.
#pragma once

#include <string>

#include "batchloom/control/shard_opener.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/sources/sidecar_format.h"

namespace batchloom::control {

/// Where an index is written.
struct IndexOutput {
  objstore::FileOps& files;
  std::string folder = {};  ///< Empty: beside the shard.
};

/// Indexes the shard at `path` (as SourceConfig has it), whatever index there is. Blocks for as
/// long as reading the shard takes. Memory: one block of the index, and 16 bytes a record of JSON
/// Lines. Errors: those of readers (sources/faults.h) and of SidecarWriter; `conflict` where the
/// shard changes meanwhile.
Result<sources::SidecarTotals> index_shard(const ShardOpener& opener, const std::string& path,
                                           const IndexOutput& output, sources::FilePool& pool,
                                           const CallOptions& call);

}  // namespace batchloom::control
