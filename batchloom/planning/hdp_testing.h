// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"

namespace batchloom::planning {

/// A planner for so many ranks along dp, with the built-in model.
HdpPlanner planner_for(std::uint32_t ranks, const HdpOptions& options = {});

/// When the last rank ends, if each follows its part of the plan's order and every task takes what
/// it costs: a gang waits for the last of its members.
std::uint64_t replay_ns(const model::StepPlan& plan);

/// The shortest makespan, of one layer, that any schedule can reach, by looking at all of them: for
/// a handful of samples and ranks.
std::uint64_t best_makespan_ns(const CostModel& model, const HdpShape& shape,
                               const std::vector<std::uint32_t>& tokens);

}  // namespace batchloom::planning
