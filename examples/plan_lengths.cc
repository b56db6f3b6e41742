// SPDX-License-Identifier: Apache-2.0
// Lengths in, plan out: the planner in a program of its own.
#include <fmt/format.h>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"

int main() {
  const std::vector<std::uint32_t> lengths = {300'000, 90'000, 12'000, 8'000, 7'500, 900, 600};
  const auto costs = batchloom::planning::builtin_cost_model("h200-llama7b").value();
  const auto ranks = batchloom::model::Topology::parse("dp=64").value();
  const auto planner = batchloom::planning::HdpPlanner::create(costs, ranks, {}).value();
  const auto plan = planner.plan(batchloom::planning::samples_of(lengths)).value();
  for (const auto& task : plan.tasks) {
    fmt::print("{:12} ns on {:2} ranks\n", task.cost_ns, task.members.size());
  }
  fmt::print("{:12} ns for the step, at least {}\n", plan.makespan_ns, plan.lower_bound_ns);
}
