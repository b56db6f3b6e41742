// SPDX-License-Identifier: Apache-2.0
// JSON Lines: a JSON object on each line, in UTF-8. docs/formats/jsonl.md says what is read.
#pragma once

#include <memory>

#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_offsets.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

struct JsonlSettings {
  RecordFields fields;
  LossOn loss_on = LossOn::kAll;
  ReadLimits limits = {};
};

/// The records of `file` at `offsets`. No I/O. `invalid` where fields, loss and tokenizer do not go
/// together (record_fields.h), or for a limit out of range. `tokenizer` must outlive the reader.
/// Reading a record is `corruption` where its place is no line of the file: then the offsets are
/// those of another file, and the file is to be indexed again.
Result<std::unique_ptr<ShardReader>> open_jsonl(std::unique_ptr<ByteReader> file,
                                                std::shared_ptr<const RecordOffsets> offsets,
                                                JsonlSettings settings, const Tokenizer& tokenizer);

}  // namespace batchloom::sources
