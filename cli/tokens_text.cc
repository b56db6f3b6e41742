// SPDX-License-Identifier: Apache-2.0
#include "cli/tokens_text.h"

#include <fmt/format.h>

namespace batchloom::cli {

std::string tokens_text(std::uint64_t tokens) {
  constexpr std::uint64_t kKi = 1 << 10;
  constexpr std::uint64_t kMi = 1 << 20;
  if (tokens >= kMi && tokens % kMi == 0) return fmt::format("{}M", tokens / kMi);
  if (tokens >= kKi && tokens % kKi == 0) return fmt::format("{}K", tokens / kKi);
  return std::to_string(tokens);
}

}  // namespace batchloom::cli
