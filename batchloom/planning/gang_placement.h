// SPDX-License-Identifier: Apache-2.0
// Long samples onto ranks, so that no rank ever waits: ranks that end together form a group, and a
// sample takes a whole group or a part of one.
//
//  1. Shelves: first, `shelves` times, the next few of the longest samples side by side on all
//     ranks, each on so many that they end nearly together.
//  2. The others, by descending length: the group that ends first gives as few of its ranks as let
//     the sample end by the target. Where too few would be left for the next sample, it takes them
//     all. A group too narrow for a sample is put aside until shorter ones come.
//
// A group gives ranks that lie close together (rank_pieces.h). With `islands_first`, a group that
// has enough ranks for a sample, but not within one island that could hold it, is passed over for
// one that has, as long as the sample still ends by the target there. It waits for samples that fit
// into what it has of islands. Only where no group has room in one island, the sample lies apart.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/rank_levels.h"

namespace batchloom::planning {

/// A long sample on ranks, all at the same time.
struct PlacedGang {
  std::uint32_t row = 0;
  std::uint32_t tokens = 0;
  model::IndexRange members = {};  ///< Of GangPlacement::members.
  std::uint64_t start_ns = 0;
  std::uint64_t time_ns = 0;

  std::uint32_t degree() const { return members.size(); }
};

struct GangPlacement {
  std::vector<PlacedGang> gangs;
  std::vector<model::HdpRank> members;  ///< Each gang's ascending, which is its ring's order.
  std::vector<std::uint64_t> end_ns;    ///< By rank: when its last gang ends.
};

struct PlacementRule {
  std::uint64_t target_ns = 0;
  std::uint32_t shelves = 0;
  bool islands_first = true;
};

/// Nullopt where the samples do not fit below the target in this way.
std::optional<GangPlacement> place_gangs(const HdpCosts& costs, const RankLevels& levels,
                                         const HdpProblem& problem, const PlacementRule& rule);

}  // namespace batchloom::planning
