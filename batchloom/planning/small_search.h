// SPDX-License-Identifier: Apache-2.0
// Steps of few samples, where a single sample decides: many list schedules, the best of which is
// taken. Each draws a degree for every long sample, a size of packs and an order of the tasks, and
// gives each task in turn the ranks that are free first, neighbours or not; within one island where
// that has as many ranks that are free by then.
#pragma once

#include <optional>

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/rank_levels.h"

namespace batchloom::planning {

/// Steps with fewer samples are worth the search.
inline constexpr std::size_t kSmallStepSamples = 200;

/// A draft whose makespan is below `makespan_ns`, if the search finds one; times are of one layer.
/// The number of schedules tried depends on the numbers of samples and ranks alone.
std::optional<PlanDraft> search_small(const HdpCosts& costs, const RankLevels& levels,
                                      const HdpProblem& problem, std::uint64_t makespan_ns);

}  // namespace batchloom::planning
