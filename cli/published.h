// SPDX-License-Identifier: Apache-2.0
// What papers say of strategies that `batchloom whatif` replays.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace batchloom::cli {

/// A paper, and under which conditions it measured.
struct Paper {
  std::string_view name;
  std::string_view conditions;  ///< In lines of their own, without a last line end.
};

/// A speed-up that a paper states.
struct PaperRatio {
  const Paper* paper = nullptr;
  std::string_view strategy;
  std::string_view over;     ///< Of our strategies, the one that is most like the paper's base.
  std::string_view lengths;  ///< The distribution of ours that is made after its data; empty:
                             ///< it does not say which, or has pictures too.
  std::uint32_t context_tokens = 0;  ///< 0: as with lengths.
  std::string_view ratio;
};

std::span<const PaperRatio> paper_ratios();

/// What a paper says of a strategy on these lengths, or nullptr.
const PaperRatio* find_paper_ratio(std::string_view lengths, std::uint32_t context_tokens,
                                   std::string_view strategy);

/// "3.69 to 4.26 over static_cp"; empty for nullptr.
std::string to_string(const PaperRatio* ratio);

/// Each paper with its conditions, for below a table.
std::string papers_text();

}  // namespace batchloom::cli
