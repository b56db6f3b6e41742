// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_testing.h"

#include <algorithm>

#include "batchloom/planning/builtin_costs.h"

namespace batchloom::planning {
HdpPlanner planner_for(std::uint32_t ranks, const HdpOptions& options) {
  return HdpPlanner::create(
             builtin_cost_model("h200-llama7b").value(),
             model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}).value(),
             options)
      .value();
}

std::uint64_t replay_ns(const model::StepPlan& plan) {
  std::vector<std::uint64_t> free_ns(plan.ranks.size(), 0);
  for (const model::Task& task : plan.tasks) {
    std::uint64_t start_ns = 0;
    for (const model::HdpRank rank : plan.members_of(task)) {
      start_ns = std::max(start_ns, free_ns[rank.value]);
    }
    for (const model::HdpRank rank : plan.members_of(task)) {
      free_ns[rank.value] = start_ns + task.cost_ns;
    }
  }
  return free_ns.empty() ? 0 : std::ranges::max(free_ns);
}

}  // namespace batchloom::planning
