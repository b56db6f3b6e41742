// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/decoded_stream.h"
#include "batchloom/sources/decoder.h"

namespace batchloom::sources {

/// What one pass over a compressed file finds out about it.
struct ContentMap {
  Compression compression = Compression::kGzip;
  std::vector<SeekPoint> seek_points;  ///< Ascending. The first is that of content 0.
  std::uint64_t content_bytes = 0;
};

/// A compressed file's content by position. Reading on from where the last read ended costs what it
/// must; from elsewhere also what lies between there and the seek point before. Keeps its decoder
/// from one read to the next. One thread at a time.
///
/// A read is `corruption` as DecodedStream says, and where the content ends before: then the map is
/// that of another file.
Result<std::unique_ptr<ByteReader>> open_decoded(std::unique_ptr<ByteReader> file, ContentMap map);

}  // namespace batchloom::sources
