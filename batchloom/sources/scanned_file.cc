// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/scanned_file.h"

#include <utility>

#include "batchloom/sources/decoded_file.h"
#include "batchloom/sources/decoded_stream.h"

namespace batchloom::sources {

Result<ScannedFile> scan_file(CompressibleFile file, std::uint64_t max_offsets_bytes,
                              const ContentScan& scan) {
  const auto offsets_of = [&](ByteStream& content) {
    return keep_offsets(content.name(), max_offsets_bytes,
                        [&](const PlaceSink& found) { return scan(content, found); });
  };
  if (file.compression == Compression::kNone) {
    BL_ASSIGN_OR_RETURN(auto offsets, offsets_of(*stream_of(*file.bytes)));
    return ScannedFile{.content = std::move(file.bytes), .offsets = std::move(offsets)};
  }
  BL_ASSIGN_OR_RETURN(const auto content, DecodedStream::open(*file.bytes, file.compression));
  BL_ASSIGN_OR_RETURN(auto offsets, offsets_of(*content));
  BL_ASSIGN_OR_RETURN(auto decoded, open_decoded(std::move(file.bytes),
                                                 {.compression = file.compression,
                                                  .seek_points = content->seek_points(),
                                                  .content_bytes = content->content_offset()}));
  return ScannedFile{.content = std::move(decoded), .offsets = std::move(offsets)};
}

}  // namespace batchloom::sources
