// SPDX-License-Identifier: Apache-2.0
// JSON Lines: a JSON object on each line, in UTF-8. docs/formats/jsonl.md says what is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/record_offsets.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// Called with each record's place, in order; an error ends the scan.
using PlaceSink = std::function<Status(const RecordPlace&)>;

/// Finds the records of a plain JSON Lines file in one pass, with a buffer of 256 KiB, however long
/// its lines: a record's place is its line without the line's end, and a line of nothing but spaces
/// and tabs is none. What a line holds is not looked at. `corruption`: the file is in UTF-16 or
/// UTF-32, or is compressed; else what `found` says, and faults.h. Blocks.
Status scan_jsonl(ByteReader& file, const CallOptions& call, const PlaceSink& found);

/// The same in memory: 16 bytes per record. `exhausted` above `max_bytes` of them.
Result<std::shared_ptr<const RecordOffsets>> scan_jsonl_offsets(ByteReader& file,
                                                                const CallOptions& call,
                                                                std::uint64_t max_bytes);

struct JsonlSettings {
  RecordFields fields;
  LossOn loss_on = LossOn::kAll;
  ReadLimits limits = {};
};

/// The records of `file` at `offsets`. No I/O. `invalid` where fields, loss and tokenizer do not go
/// together (record_fields.h). `tokenizer` must outlive the reader.
Result<std::unique_ptr<ShardReader>> open_jsonl(std::unique_ptr<ByteReader> file,
                                                std::shared_ptr<const RecordOffsets> offsets,
                                                JsonlSettings settings, const Tokenizer& tokenizer);

}  // namespace batchloom::sources
