// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/shard_indexer.h"

#include <utility>

#include "batchloom/sources/jsonl_scan.h"
#include "batchloom/sources/sidecar_index.h"
#include "batchloom/sources/sidecar_writer.h"

namespace batchloom::control {
namespace {

/// Of places of a shard's records, in memory while it is indexed: 2^27 records.
constexpr std::uint64_t kOffsetsMaxBytes = std::uint64_t{2} << 30;

Status append_with_ids(sources::ShardReader& reader, sources::SidecarWriter& writer,
                       const CallOptions& call) {
  sources::Record record;
  for (std::uint64_t i = 0; i < reader.records(); ++i) {
    BL_ASSIGN_OR_RETURN(const auto bad, reader.read(i, call, record));
    BL_RETURN_IF_ERROR(bad ? writer.append_bad(record.place) : writer.append(record));
  }
  return Status::ok();
}

Status append_sizes(sources::ShardReader& reader, sources::SidecarWriter& writer,
                    const CallOptions& call) {
  sources::RecordSize size;
  for (std::uint64_t i = 0; i < reader.records(); ++i) {
    BL_ASSIGN_OR_RETURN(const auto bad, reader.measure(i, call, size));
    BL_RETURN_IF_ERROR(bad ? writer.append_bad(size.place) : writer.append(size));
  }
  return Status::ok();
}

}  // namespace

Result<sources::SidecarTotals> index_shard(const ShardOpener& opener, const std::string& path,
                                           const IndexOutput& output, sources::FilePool& pool,
                                           const CallOptions& call) {
  const std::string indexed = opener.indexed_file(path);
  BL_ASSIGN_OR_RETURN(const sources::FileStamp stamp, sources::stamp_of(indexed));
  std::unique_ptr<sources::ByteReader> file = pool.reader(indexed, stamp);
  sources::SidecarHeader header;
  BL_ASSIGN_OR_RETURN(header.shard, sources::fingerprint_of(stamp, *file, call));
  header.rules = opener.rules();
  std::shared_ptr<const sources::RecordOffsets> offsets;
  if (opener.keeps_ids()) {
    header.contents = {.id_width_bytes = opener.id_width_bytes(), .loss_intervals = true};
    BL_ASSIGN_OR_RETURN(offsets, sources::scan_jsonl_offsets(*file, kOffsetsMaxBytes, call));
  }
  BL_ASSIGN_OR_RETURN(auto reader, opener.open(std::move(file), offsets, pool, call));
  BL_ASSIGN_OR_RETURN(auto writer,
                      sources::SidecarWriter::create(
                          output.files, sources::sidecar_path(indexed, output.folder), header));
  BL_RETURN_IF_ERROR(opener.keeps_ids() ? append_with_ids(*reader, *writer, call)
                                        : append_sizes(*reader, *writer, call));
  BL_ASSIGN_OR_RETURN(const sources::FileStamp now, sources::stamp_of(indexed));
  BL_RETURN_IF_ERROR(sources::check_unchanged(indexed, stamp, now));
  return writer->finish();
}

}  // namespace batchloom::control
