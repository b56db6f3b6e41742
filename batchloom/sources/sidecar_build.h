// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/sources/fingerprint.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/sidecar_format.h"

namespace batchloom::sources {

/// An index to be made.
struct SidecarBuild {
  std::string shard;       ///< The shard's path.
  FileStamp stamp;         ///< Of the shard, before `header` had its fingerprint taken.
  std::string index_path;  ///< sidecar_path().
  SidecarHeader header;
};

/// Reads all records of a shard and writes its index. Bad records are counted, and no error.
/// Blocks for as long as the shard is large. Errors: those of the reader, and of SidecarWriter;
/// `conflict` where the shard changed meanwhile. After an error no index was written.
Result<SidecarTotals> build_sidecar(ShardReader& reader, const SidecarBuild& build,
                                    objstore::FileOps& files, const CallOptions& call);

}  // namespace batchloom::sources
