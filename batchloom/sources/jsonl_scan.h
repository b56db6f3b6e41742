// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_stream.h"
#include "batchloom/sources/record_offsets.h"
#include "batchloom/sources/utf8.h"

namespace batchloom::sources {

/// Finds the records of JSON Lines in one pass, with a buffer of 256 KiB, however long its lines
/// are. A record's place is its line without the line's end; a line of nothing but spaces and tabs
/// is none. What else a line holds is not looked at. Blocks. `corruption`: the content is in UTF-16
/// or UTF-32, or compressed; else what `found` says, and faults.h.
Status scan_jsonl(ByteStream& content, const CallOptions& call, const PlaceSink& found);

/// The same into memory, 16 bytes for each record. `exhausted` above `max_bytes` of them.
Result<std::shared_ptr<const RecordOffsets>> scan_jsonl_offsets(ByteStream& content,
                                                                std::uint64_t max_bytes,
                                                                const CallOptions& call);

}  // namespace batchloom::sources
