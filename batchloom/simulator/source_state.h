// SPDX-License-Identifier: Apache-2.0
// The state that a simulated producer commits with its batches: the next record of its source.
#pragma once

#include <cstdint>

#include "batchloom/base/bytes.h"

namespace batchloom::simulator {

/// Padded with zeros to make states of several sizes.
Bytes encode_source_state(std::uint64_t next_record, std::size_t padding_bytes);

/// 0 for an empty state.
std::uint64_t decode_source_state(ByteSpan state);

}  // namespace batchloom::simulator
