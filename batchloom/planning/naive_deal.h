// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/rank_levels.h"

namespace batchloom::planning {

/// The naive assignment (ByteScale, algorithm 1), where it ends before `makespan_ns`: so that no
/// plan of ours is worse. Samples in the order of their rows; short ones packed by best fit; long
/// ones on the fewest ranks; all dealt to the ranks in turn. Its tasks then are taken in the order
/// in which they begin, each by the ranks that are free first, which ends no later as long as
/// exchanges take no time. Times are of one layer. O(n log n) and the ranks of all gangs.
std::optional<PlanDraft> deal_naively(const HdpCosts& costs, const RankLevels& levels,
                                      const HdpProblem& problem, std::uint64_t makespan_ns);

}  // namespace batchloom::planning
