// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace batchloom::cli {

/// "256K", "2M", or the number.
std::string tokens_text(std::uint64_t tokens);

}  // namespace batchloom::cli
