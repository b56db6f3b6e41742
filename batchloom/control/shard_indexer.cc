// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/shard_indexer.h"

#include <utility>

#include "batchloom/sources/sidecar_build.h"
#include "batchloom/sources/sidecar_index.h"

namespace batchloom::control {

Result<sources::SidecarTotals> index_shard(const ShardOpener& opener, const std::string& path,
                                           const IndexOutput& output, sources::FilePool& pool,
                                           const CallOptions& call) {
  sources::SidecarBuild build;
  build.shard = opener.indexed_file(path);
  build.index_path = sources::sidecar_path(build.shard, output.folder);
  BL_ASSIGN_OR_RETURN(build.stamp, sources::stamp_of(build.shard));
  std::unique_ptr<sources::ByteReader> file = pool.reader(build.shard, build.stamp);
  BL_ASSIGN_OR_RETURN(build.header.shard, sources::fingerprint_of(build.stamp, *file, call));
  build.header.rules = opener.rules();
  if (opener.keeps_ids()) {
    build.header.contents = {.id_width_bytes = opener.id_width_bytes(), .loss_intervals = true};
  }
  BL_ASSIGN_OR_RETURN(const auto reader, opener.open(std::move(file), pool, call));
  return sources::build_sidecar(*reader, build, output.files, call);
}

}  // namespace batchloom::control
