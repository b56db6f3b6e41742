// SPDX-License-Identifier: Apache-2.0
// JSON Lines as files have them: plain, or compressed as a whole.
#pragma once

#include <cstdint>
#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/jsonl_reader.h"
#include "batchloom/sources/scanned_file.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// The records of a file of which nothing is known yet: a pass over all of it finds them, and keeps
/// 16 bytes of each. Blocks. Of a compressed file all places are those of its content; reading one
/// record after another decodes it a second time, going back begins anew at the frame.
/// `exhausted` beyond `max_offsets_bytes`; else as scan_jsonl(), DecodedStream and open_jsonl().
Result<std::unique_ptr<ShardReader>> open_jsonl_file(
    CompressibleFile file, JsonlSettings settings, const Tokenizer& tokenizer,
    const CallOptions& call, std::uint64_t max_offsets_bytes = kMaxOffsetsBytes);

}  // namespace batchloom::sources
