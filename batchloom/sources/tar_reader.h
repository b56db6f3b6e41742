// SPDX-License-Identifier: Apache-2.0
// WebDataset tars: records are samples of neighbouring members. docs/formats/webdataset.md says
// what is read.
#pragma once

#include <cstdint>
#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_offsets.h"
#include "batchloom/sources/record_pictures.h"
#include "batchloom/sources/scanned_file.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

struct TarSettings {
  RecordFields fields;  ///< By members' extensions (tar_fields.h).
  LossOn loss_on = LossOn::kAll;
  PictureSettings pictures = {};  ///< Its field is a member's extension, too.
  ReadLimits limits = {};
};

/// The records of `file` at `offsets`: reading one reads no more than its own place, and of that
/// only headers and the members that fields name. No I/O. `invalid` where fields, loss, pictures
/// and tokenizer do not go together (record_fields.h, record_pictures.h), or for a limit out of
/// range. `tokenizer` must outlive the reader. Reading a record is `corruption` where its place
/// holds no sample.
Result<std::unique_ptr<ShardReader>> open_tar(std::unique_ptr<ByteReader> file,
                                              std::shared_ptr<const RecordOffsets> offsets,
                                              TarSettings settings, const Tokenizer& tokenizer);

/// The records of a file of which nothing is known yet: a pass over its headers finds them, over
/// all of it where it is compressed, and keeps 16 bytes of each. Blocks. Errors: those of
/// scan_file(), scan_tar() and open_tar().
Result<std::unique_ptr<ShardReader>> open_tar_file(
    CompressibleFile file, TarSettings settings, const Tokenizer& tokenizer,
    const CallOptions& call, std::uint64_t max_offsets_bytes = kMaxOffsetsBytes);

}  // namespace batchloom::sources
