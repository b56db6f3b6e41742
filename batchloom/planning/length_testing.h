// SPDX-License-Identifier: Apache-2.0
// Lengths of a step's samples as they come and as they are hard to plan, for property tests.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "batchloom/model/step_plan.h"

namespace batchloom::planning {

using Lengths = std::vector<std::uint32_t>;

/// What they are made for.
struct LengthLimits {
  std::uint32_t ranks = 1;  ///< Or groups of ranks: among whom samples are divided. At least 1.
  std::uint32_t capacity_tokens = 8192;
  std::uint32_t most_tokens = 8192;  ///< No sample has more. At least 1.
};

/// One way in which lengths may be distributed.
struct LengthGenerator {
  std::string_view name;
  rc::Gen<Lengths> (*lengths)(const LengthLimits& limits);
};

/// All of them:
///
///   uniform           from 1 to the most
///   lognormal         about a quarter of the capacity, a few of them many times as long
///   two_point         two lengths, one of which fits on one rank
///   all_equal
///   giant_and_dust    one of the most tokens among short ones
///   around_edges      powers of two and multiples of the capacity, and one token more and less
///   hard_for_lpt      what the longest first is worst at (Graham, 1969): on R ranks two each of
///                     2R - 1, ..., R + 1 units, and three of R
std::span<const LengthGenerator> length_generators();

/// Of any of these.
rc::Gen<Lengths> any_lengths(const LengthLimits& limits);

/// The same samples in another order.
std::vector<model::PlanSample> shuffled(std::vector<model::PlanSample> samples, std::uint64_t seed);

}  // namespace batchloom::planning
