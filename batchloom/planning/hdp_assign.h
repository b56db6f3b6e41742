// SPDX-License-Identifier: Apache-2.0
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

HdpAssignment assign_hdp(const HdpCosts& costs, const HdpProblem& problem);

}  // namespace batchloom::planning
