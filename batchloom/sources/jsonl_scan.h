// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_stream.h"
#include "batchloom/sources/record_offsets.h"

namespace batchloom::sources {

/// A byte order mark, which a file may begin with; it belongs to no record.
inline constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

/// Called with each record's place, in order; an error ends the scan.
using PlaceSink = std::function<Status(const RecordPlace&)>;

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
