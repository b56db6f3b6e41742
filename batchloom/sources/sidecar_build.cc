// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_build.h"

#include <memory>
#include <optional>

#include "batchloom/sources/sidecar_writer.h"

namespace batchloom::sources {
namespace {

Status add_records(ShardReader& reader, SidecarWriter& writer, const CallOptions& call) {
  Record record;
  for (std::uint64_t number = 0; number < reader.records(); ++number) {
    BL_ASSIGN_OR_RETURN(const auto bad, reader.read(number, call, record));
    BL_RETURN_IF_ERROR(bad ? writer.append_bad(record.place) : writer.append(record));
  }
  return Status::ok();
}

/// Without looking at data, where the format says sizes.
Status add_sizes(ShardReader& reader, SidecarWriter& writer, const CallOptions& call) {
  RecordSize size;
  for (std::uint64_t number = 0; number < reader.records(); ++number) {
    BL_ASSIGN_OR_RETURN(const auto bad, reader.measure(number, call, size));
    BL_RETURN_IF_ERROR(bad ? writer.append_bad(size.place) : writer.append(size));
  }
  return Status::ok();
}

}  // namespace

Result<SidecarTotals> build_sidecar(ShardReader& reader, const SidecarBuild& build,
                                    objstore::FileOps& files, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto writer,
                      SidecarWriter::create(files, build.index_path, build.header));
  BL_RETURN_IF_ERROR(build.header.contents.has_payload() ? add_records(reader, *writer, call)
                                                         : add_sizes(reader, *writer, call));
  BL_ASSIGN_OR_RETURN(const FileStamp now, stamp_of(build.shard));
  BL_RETURN_IF_ERROR(check_unchanged(build.shard, build.stamp, now));
  return writer->finish();
}

}  // namespace batchloom::sources
