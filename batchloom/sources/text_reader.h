// SPDX-License-Identifier: Apache-2.0
// Plain text: a file is one record. docs/formats/text.md says what is read.
#pragma once

#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/scanned_file.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// The text that `file` holds, as the one record of its shard. No I/O; of a compressed file a pass
/// over all of it, which says how much it holds. `invalid` where the tokenizer takes no text, or
/// for a limit out of range; else as scan_file(). `tokenizer` must outlive the reader.
Result<std::unique_ptr<ShardReader>> open_text(CompressibleFile file, const ReadLimits& limits,
                                               const Tokenizer& tokenizer, const CallOptions& call);

}  // namespace batchloom::sources
