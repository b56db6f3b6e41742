// SPDX-License-Identifier: Apache-2.0
// Steps of few samples, where a single one decides: local search over list schedules of pipelines.
//
// A schedule is an order of tasks, a degree for each long sample and packs of the short ones; each
// task in turn takes the ranks that have least to do so far. A move changes one of these; it stays
// where the walk of all events is not longer for it.
#pragma once

#include <cstddef>
#include <optional>

#include "batchloom/planning/hdp_pipeline.h"

namespace batchloom::planning {

/// Steps with fewer samples, times ranks, are worth the search.
inline constexpr std::size_t kPipelineSearchSize = 131'072;

/// A plan whose makespan is below `makespan_ns`, if the search finds one. The number of moves
/// depends on the numbers of samples, ranks and stages alone.
std::optional<HdpPipelinePlan> search_pipelines(const PipelineCosts& pipeline,
                                                const HdpCosts& costs, const HdpProblem& problem,
                                                std::uint64_t makespan_ns);

}  // namespace batchloom::planning
