// SPDX-License-Identifier: Apache-2.0
// How long plans take, for every strategy, whatever the lengths and the cluster. All times are
// those of step_time.h, which knows nothing of how a plan was made.
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/planning/step_time.h"
#include "batchloom/planning/strategy_testing.h"

namespace batchloom::planning {
namespace {

using model::Axis;
using model::StepPlan;

/// As far as the strategy counts links.
std::uint64_t step_ns(const Strategy& strategy, const StrategyInputs& inputs,
                      const StepPlan& plan) {
  return step_time(plan, inputs.costs, {.links = strategy.takes.levels}).value().step_ns;
}

StrategyInputs with_one_stage(StrategyInputs inputs) {
  std::vector<model::AxisExtent> axes = inputs.topology.axes();
  std::erase_if(axes, [](const model::AxisExtent& axis) { return axis.axis == Axis::kPp; });
  inputs.topology = model::Topology::create(axes, inputs.topology.levels()).value();
  return inputs;
}

/// Without what the strategy's makespans do not count: pipeline stages but for these three, copies
/// to the host in those of others, and links between pipelines.
StrategyInputs as_counted(const Strategy& strategy, StrategyInputs inputs) {
  constexpr std::string_view kCountStages[] = {"hdp", "dp_balance", "pp_balance"};
  const bool counts_stages =
      std::ranges::find(kCountStages, strategy.name) != std::end(kCountStages);
  if (!counts_stages) inputs = with_one_stage(inputs);
  if (strategy.kind == StrategyKind::kBaseline) inputs.costs.copy_bytes_per_s = 0;
  if (inputs.topology.extent(Axis::kPp) > 1) {
    inputs.topology = model::Topology::create(inputs.topology.axes()).value();
  }
  return inputs;
}

class StrategyTimes : public testing::TestWithParam<Strategy> {};
INSTANTIATE_TEST_SUITE_P(All, StrategyTimes, testing::ValuesIn(tested_strategies()),
                         name_of_strategy);

TEST_P(StrategyTimes, AreThoseThatThePlanStates) {
  const Strategy& strategy = GetParam();
  holds_for_all_lengths(strategy, [&](const StrategyInputs& any, const Lengths& lengths) {
    const StrategyInputs inputs = as_counted(strategy, any);
    const StepPlan plan = planned(strategy, inputs, lengths);
    const std::uint64_t time_ns = step_ns(strategy, inputs, plan);
    RC_ASSERT(time_ns <= plan.makespan_ns);
    // A ring over links is charged for the slowest that its ranks could use, and balance in groups
    // rounds up each sample's share.
    const bool over_links = strategy.takes.levels && !inputs.topology.levels().empty();
    const bool in_rings = strategy.kind == StrategyKind::kOurs && strategy.spread == Spread::kDp &&
                          inputs.topology.extent(Axis::kCp) > 1;
    if (!over_links && !in_rings) RC_ASSERT(time_ns == plan.makespan_ns);
  });
}

/// Of the strategies in groups, which share it, where a group is one rank and one stage.
TEST(GroupedTimes, OfNoneAreBelowTheBound) {
  const Strategy& none = **find_strategy("none");
  holds_for_all_lengths(none, [&](StrategyInputs inputs, Lengths lengths) {
    inputs = with_one_stage(inputs);
    const std::uint32_t dp = inputs.topology.extent(Axis::kDp);
    inputs.topology = model::Topology::create({{Axis::kDp, dp}}).value();
    for (std::uint32_t& length : lengths) length = std::min(length, inputs.capacity_tokens);
    const std::uint64_t bound_ns = planned(none, inputs, lengths).lower_bound_ns;
    RC_ASSERT(lengths.empty() == (bound_ns == 0));
    for (const Strategy& strategy : tested_strategies()) {
      if (strategy.kind != StrategyKind::kOurs || strategy.spread != Spread::kDp) continue;
      const StepPlan plan = planned(strategy, inputs, lengths);
      RC_ASSERT(plan.lower_bound_ns == bound_ns);
      RC_ASSERT(step_ns(strategy, inputs, plan) >= bound_ns);
    }
  });
}

TEST(HdpTimes, AreNotBelowTheBound) {
  const Strategy& hdp = **find_strategy("hdp");
  holds_for_all_lengths(hdp, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const StepPlan plan = planned(hdp, inputs, lengths);
    RC_ASSERT(lengths.empty() == (plan.lower_bound_ns == 0));
    RC_ASSERT(step_ns(hdp, inputs, plan) >= plan.lower_bound_ns);
  });
}

/// Where nothing is on the host, the published rules take a number of ranks that hdp may take, too.
TEST(HdpTimes, OfThePublishedRulesAreNotBelowTheBound) {
  const Strategy& hdp = **find_strategy("hdp");
  const Strategy& naive = **find_strategy("naive_hdp");
  holds_for_all_lengths(naive, [&](StrategyInputs inputs, const Lengths& lengths) {
    inputs.offload = false;
    const std::uint64_t bound_ns = planned(hdp, inputs, lengths).lower_bound_ns;
    for (const std::string_view name : {"naive_hdp", "dp_balance", "pp_balance"}) {
      const StepPlan plan = planned(**find_strategy(name), inputs, lengths);
      RC_ASSERT(step_ns(hdp, inputs, plan) >= bound_ns);
    }
  });
}

}  // namespace
}  // namespace batchloom::planning
