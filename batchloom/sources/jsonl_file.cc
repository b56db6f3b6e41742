// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_file.h"

#include <utility>

#include "batchloom/sources/byte_stream.h"
#include "batchloom/sources/decoded_file.h"
#include "batchloom/sources/decoded_stream.h"
#include "batchloom/sources/jsonl_scan.h"

namespace batchloom::sources {

Result<std::unique_ptr<ShardReader>> open_jsonl_file(JsonlFile file, JsonlSettings settings,
                                                     const Tokenizer& tokenizer,
                                                     const CallOptions& call,
                                                     std::uint64_t max_offsets_bytes) {
  if (file.compression == Compression::kNone) {
    const auto content = stream_of(*file.bytes);
    BL_ASSIGN_OR_RETURN(auto offsets, scan_jsonl_offsets(*content, max_offsets_bytes, call));
    return open_jsonl(std::move(file.bytes), std::move(offsets), std::move(settings), tokenizer);
  }
  BL_ASSIGN_OR_RETURN(const auto content, DecodedStream::open(*file.bytes, file.compression));
  BL_ASSIGN_OR_RETURN(auto offsets, scan_jsonl_offsets(*content, max_offsets_bytes, call));
  BL_ASSIGN_OR_RETURN(auto decoded, open_decoded(std::move(file.bytes),
                                                 {.compression = file.compression,
                                                  .seek_points = content->seek_points(),
                                                  .content_bytes = content->content_offset()}));
  return open_jsonl(std::move(decoded), std::move(offsets), std::move(settings), tokenizer);
}

}  // namespace batchloom::sources
