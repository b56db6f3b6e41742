// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/byte_stream.h"
#include "batchloom/sources/decoder.h"
#include "batchloom/sources/record_offsets.h"

namespace batchloom::sources {

/// A file that may be compressed as a whole.
struct CompressibleFile {
  std::unique_ptr<ByteReader> bytes;
  Compression compression = Compression::kNone;
};

/// Of the places of a file's records, in memory: 2^27 records.
inline constexpr std::uint64_t kMaxOffsetsBytes = std::uint64_t{2} << 30;

/// What a file holds, and where in that its records lie.
struct ScannedFile {
  std::unique_ptr<ByteReader> content;
  std::shared_ptr<const RecordOffsets> offsets;
};

/// Finds the records in content that it reads to the end.
using ContentScan = std::function<Status(ByteStream& content, const PlaceSink& found)>;

/// Finds the records of a file by one pass. Blocks. `exhausted` beyond `max_offsets_bytes`; else
/// what `scan` says, and, of a compressed file, as DecodedStream.
Result<ScannedFile> scan_file(CompressibleFile file, std::uint64_t max_offsets_bytes,
                              const ContentScan& scan);

}  // namespace batchloom::sources
