// SPDX-License-Identifier: Apache-2.0
// Writes a sidecar index in one pass, with memory for one block and a buffer. As a ReplacedFile:
// whoever opens an index finds a whole one. Several writers of one write the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/sources/replaced_file.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/sidecar_format.h"

namespace batchloom::sources {

/// One thread at a time. Calls block for as long as the disk does. Errors name the index:
/// `exhausted` for a full disk, `invalid` for a missing permission, else as in objstore/file_ops.h.
/// After one, all that is left is to destroy the writer.
class SidecarWriter {
 public:
  /// `header` as it stands; its shard's fingerprint is to be taken before the records are read,
  /// and the shard to be checked to be unchanged before finish(). Makes the folder of `path` where
  /// it is missing, but none above. `invalid` for contents or blocks that the format does not have.
  /// `files` must outlive the writer.
  static Result<std::unique_ptr<SidecarWriter>> create(objstore::FileOps& files, std::string path,
                                                       const SidecarHeader& header);

  /// The next record. `invalid`: 2^32 - 1 ids or more, a mask of another length, or an id that does
  /// not fit the width. Ids and mask are dropped where the index holds none.
  Status append(const Record& record);

  /// The next record, for an index without ids and loss intervals (checked). `invalid` for more
  /// labels than tokens leave.
  Status append(const RecordSize& record);

  /// The next record, which is a bad one.
  Status append_bad(const RecordPlace& place);

  /// What the index holds now. Call it once, at the end.
  Result<SidecarTotals> finish();

 private:
  /// Of the records of the block that is being written.
  struct Columns {
    std::vector<std::uint64_t> offsets;
    std::vector<std::uint64_t> payloads;
    std::vector<std::uint64_t> sizes;
    std::vector<std::uint32_t> tokens;
    std::vector<std::uint32_t> valid_labels;
    std::vector<std::uint32_t> intervals;
    std::vector<std::uint32_t> payload_crcs;
  };
  struct Payload {
    std::uint64_t at = 0;
    std::uint32_t intervals = 0;
    std::uint32_t crc = 0;
  };

  SidecarWriter(std::string path, const SidecarHeader& header)
      : path_(std::move(path)), header_(header) {}

  Status check(const Record& record) const;
  Result<Payload> write_payload(const Record& record);
  Status append_row(const RecordSize& record, const Payload& payload);
  Status end_block();
  /// Appends to the file.
  Status put(ByteSpan bytes);
  Status explain(const Status& error) const;

  const std::string path_;
  const SidecarHeader header_;
  std::uint32_t header_crc_ = 0;

  std::unique_ptr<ReplacedFile> file_;
  Columns columns_;
  std::vector<DirectoryRow> directory_;
  SidecarTotals totals_;
};

}  // namespace batchloom::sources
