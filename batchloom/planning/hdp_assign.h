// SPDX-License-Identifier: Apache-2.0
// The search for a target that gangs and packs can keep: the only place that tries again.
#pragma once

#include "batchloom/planning/gang_placement.h"
#include "batchloom/planning/rank_loads.h"

namespace batchloom::planning {

/// Who runs what in one step.
struct HdpAssignment {
  GangPlacement gangs;
  RankLoads loads;
  std::uint64_t makespan_ns = 0;
};

/// Targets from the lower bound upward; gangs that end by the target, first without shelves; short
/// samples around them. Each target is tried with islands first, and without where that does not
/// come close enough to the bound; the latter must then end 0.2 % earlier to be taken. At most four
/// targets are tried, or one with very many ranks, and none after an assignment that comes close
/// enough.
HdpAssignment assign_hdp(const HdpCosts& costs, const RankLevels& levels,
                         const HdpProblem& problem);

}  // namespace batchloom::planning
