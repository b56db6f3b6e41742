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

}  // namespace batchloom::planning
