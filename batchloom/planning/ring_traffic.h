// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/rank_levels.h"

namespace batchloom::planning {

/// What the rings of a step send, in all layers, forward and backward.
struct RingTraffic {
  /// Between neighbours whose innermost common group is of this level of RankLevels.
  std::vector<std::uint64_t> bytes_by_level;
  /// What gangs of these degrees send between islands at least: nothing where one island has enough
  /// ranks, else once over the edge of each of the fewest islands that have.
  std::uint64_t least_between_islands = 0;
  std::uint32_t gangs = 0;        ///< Of two members and more.
  std::uint32_t gangs_apart = 0;  ///< In several islands, though one has enough ranks.

  std::uint64_t between_islands() const;
};

/// Islands are the groups of the innermost level. Over each edge of a ring of d go the keys and
/// values of all members but one, and backward `backward_bytes_factor` times as much.
RingTraffic ring_traffic(const model::StepPlan& plan, const RankLevels& levels,
                         const CostModel& model, std::uint32_t backward_bytes_factor = 2);

}  // namespace batchloom::planning
