// SPDX-License-Identifier: Apache-2.0
// Parquet: a row is a record. docs/formats/parquet.md says what is read.
#pragma once

#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_pictures.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// Ok, or `invalid`: this build reads no Parquet, since it found no pyarrow, and what to do.
Status parquet_is_built();

struct ParquetSettings {
  RecordFields fields;
  LossOn loss_on = LossOn::kAll;
  PictureSettings pictures = {};
  ReadLimits limits = {};
};

/// The most memory that the pages of a file may need at once: what a page needs that holds one
/// record of the largest size, as it is and decompressed, and the same of a dictionary.
constexpr std::uint64_t parquet_page_bytes(const ReadLimits& limits) {
  return 4 * limits.max_record_bytes + (std::uint64_t{64} << 20);
}

/// The records of a file. Blocks for as long as reading its footer takes. `invalid` where fields,
/// loss, pictures and tokenizer do not go together (record_fields.h, record_pictures.h), for a
/// limit out of range, and as parquet_is_built(); else as ParquetFile. `tokenizer` must outlive the
/// reader. Reading one record after another costs what it must; going back, the records before in
/// the row group.
Result<std::unique_ptr<ShardReader>> open_parquet(std::unique_ptr<ByteReader> file,
                                                  ParquetSettings settings,
                                                  const Tokenizer& tokenizer,
                                                  const CallOptions& call);

}  // namespace batchloom::sources
