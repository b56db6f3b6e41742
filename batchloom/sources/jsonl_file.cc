// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_file.h"

#include <utility>

#include "batchloom/sources/jsonl_scan.h"

namespace batchloom::sources {

Result<std::unique_ptr<ShardReader>> open_jsonl_file(CompressibleFile file, JsonlSettings settings,
                                                     const Tokenizer& tokenizer,
                                                     const CallOptions& call,
                                                     std::uint64_t max_offsets_bytes) {
  BL_ASSIGN_OR_RETURN(ScannedFile scanned,
                      scan_file(std::move(file), max_offsets_bytes,
                                [&](ByteStream& content, const PlaceSink& found) {
                                  return scan_jsonl(content, call, found);
                                }));
  return open_jsonl(std::move(scanned.content), std::move(scanned.offsets), std::move(settings),
                    tokenizer);
}

}  // namespace batchloom::sources
