// SPDX-License-Identifier: Apache-2.0
// A ConsumerState as a line of ASCII, for checkpoints of any kind: docs/formats/consumer_state.md.
#pragma once

#include <string>
#include <string_view>

#include "batchloom/client/consumer.h"

namespace batchloom::client {

/// Version 2.
std::string to_text(const ConsumerState& state);

/// Of any version. `invalid`, quoting the text and saying what is wrong, for anything but what
/// to_text() writes or, in builds before, wrote.
Result<ConsumerState> parse_state(std::string_view text);

}  // namespace batchloom::client
