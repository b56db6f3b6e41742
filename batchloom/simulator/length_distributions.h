// SPDX-License-Identifier: Apache-2.0
// Lengths of the samples of a step, for studies of planning.
//
//  1. A distribution is a list of ranges (lo, hi] with shares of the samples; within a range a
//     length is log-uniform: as likely as its reciprocal.
//  2. A draw takes a range by its share, then a length in it: a uniform one, kept with probability
//     (lo + 1) / length, or else drawn again. Counting is all that takes; no logarithm, whose last
//     digit would depend on the host.
//  3. What is longer than the context is drawn again from the start: ranges above it drop out, and
//     the others' shares grow in proportion.
//  4. Bits are splitmix64's, from the seed. So the same draw gives the same lengths everywhere.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::simulator {

/// What draw_lengths() draws.
struct LengthDraw {
  std::string_view distribution;
  std::uint32_t context_tokens = 0;  ///< Of the longest sample that there may be.
  std::uint64_t total_tokens = 0;    ///< Of all samples; at most kTotalTokensMax.
  std::uint64_t seed = 1;
};

inline constexpr std::uint64_t kTotalTokensMax = std::uint64_t{1} << 34;

/// The names that draw_lengths() knows. From published figures; `lengths/length-distributions.json`
/// names the source of each:
///
///   byted-like      production long-context data: 12 % of tokens are in samples above 1M
///   github-like     code: a third of tokens is in samples up to 2K
///   prolong         continued training for long contexts; up to 340,000
///   lognormal-wide  a stress case
///   wiki            median 347, mean about 1,040
///   wlb             0.53 % of samples, above 64K, have 12.8 % of the tokens
///   llama3-sft      0.11 % of samples have 37,000 tokens on average, the others 1,000
///
/// and of our own making, where c is the context:
///
///   bimodal         99 % of samples in (1,024, 2,048], 1 % in (c / 2, c]
///   uniform         every length in [1, c] as likely
///   one-giant       the first sample has c tokens, all others are in (512, 2,048]
std::vector<std::string_view> length_distribution_names();

/// Lengths in the order in which they were drawn. Their sum is `total_tokens`: the last one is cut
/// to it. `invalid`: an unknown name (the message lists the known), a context that no length of the
/// distribution fits into, or more tokens in all than kTotalTokensMax.
Result<std::vector<std::uint32_t>> draw_lengths(const LengthDraw& draw);

}  // namespace batchloom::simulator
