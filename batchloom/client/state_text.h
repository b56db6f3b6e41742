// SPDX-License-Identifier: Apache-2.0
// A ConsumerState as a line of ASCII, for checkpoints of any kind:
//
//   batchloom-state 1 <stream uuid, 32 hex digits> <next step> <samples hash, 16 hex digits>
//
// The hash stands last and has a fixed length, so that no part of a line is a line.
#pragma once

#include <string>
#include <string_view>

#include "batchloom/client/consumer.h"

namespace batchloom::client {

std::string to_text(const ConsumerState& state);

/// `invalid`, quoting the text, for anything but what to_text() writes.
Result<ConsumerState> parse_state(std::string_view text);

}  // namespace batchloom::client
