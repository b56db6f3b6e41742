// SPDX-License-Identifier: Apache-2.0
// Long samples onto neighbouring ranks, so that no rank ever waits: ranks that end together form a
// group, and a sample takes a whole group or a part of one.
//
//  1. Shelves: first, `shelves` times, the next few of the longest samples side by side on all
//     ranks, each on so many that they end nearly together.
//  2. The others, by descending length: the group that ends first gives as few of its ranks as let
//     the sample end by the target. Where too few would be left for the next sample, it takes them
//     all. A group too narrow for a sample is put aside until shorter ones come.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchloom/planning/hdp_problem.h"

namespace batchloom::planning {

/// A long sample on ranks [first_rank, first_rank + degree), all at the same time.
struct PlacedGang {
  std::uint32_t row = 0;
  std::uint32_t tokens = 0;
  std::uint32_t first_rank = 0;
  std::uint32_t degree = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t time_ns = 0;
};

struct GangPlacement {
  std::vector<PlacedGang> gangs;
  std::vector<std::uint64_t> end_ns;  ///< By rank: when its last gang ends.
};

/// Nullopt where the samples do not fit below `target_ns` in this way.
std::optional<GangPlacement> place_gangs(const HdpCosts& costs, const HdpProblem& problem,
                                         std::uint64_t target_ns, std::uint32_t shelves);

}  // namespace batchloom::planning
