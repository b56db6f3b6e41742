// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace batchloom {

/// The one of `known` that `word` most likely misspells: nearest by insertions, deletions,
/// replacements and swaps of neighbours, and at most a third of the word away. nullopt if none is.
std::optional<std::string> nearest_spelling(std::string_view word,
                                            std::span<const std::string> known);

}  // namespace batchloom
