// SPDX-License-Identifier: Apache-2.0
// How long plans take, for every strategy, whatever the lengths and the cluster. All times are
// those of step_time.h, which knows nothing of how a plan was made.
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/step_time.h"
#include "batchloom/planning/strategy_testing.h"

namespace batchloom::planning {
namespace {

using model::StepPlan;

class StrategyTimes : public testing::TestWithParam<Strategy> {};
INSTANTIATE_TEST_SUITE_P(All, StrategyTimes, testing::ValuesIn(tested_strategies()),
                         name_of_strategy);

/// As far as the strategy counts links.
std::uint64_t step_ns(const Strategy& strategy, const StrategyInputs& inputs,
                      const StepPlan& plan) {
  return step_time(plan, inputs.costs, {.links = strategy.takes.levels}).value().step_ns;
}

TEST_P(StrategyTimes, AreThoseThatThePlanStates) {
  const Strategy& strategy = GetParam();
  holds_for_all_lengths(strategy, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const StepPlan plan = planned(strategy, inputs, lengths);
    const std::uint64_t time_ns = step_ns(strategy, inputs, plan);
    RC_ASSERT(time_ns == plan.makespan_ns);
  });
}

class OurTimes : public testing::TestWithParam<Strategy> {};

std::vector<Strategy> tested_ours() {
  std::vector<Strategy> ours = tested_strategies();
  std::erase_if(ours, [](const Strategy& row) { return row.kind != StrategyKind::kOurs; });
  return ours;
}
INSTANTIATE_TEST_SUITE_P(All, OurTimes, testing::ValuesIn(tested_ours()), name_of_strategy);

TEST_P(OurTimes, AreNotBelowTheBound) {
  const Strategy& strategy = GetParam();
  holds_for_all_lengths(strategy, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const StepPlan plan = planned(strategy, inputs, lengths);
    RC_ASSERT(lengths.empty() == (plan.lower_bound_ns == 0));
    RC_ASSERT(plan.lower_bound_ns <= plan.makespan_ns);
    RC_ASSERT(plan.lower_bound_ns <= step_ns(strategy, inputs, plan));
  });
}

/// Nobody who lays out by the same rules ends before the bound: so it is one.
TEST(GroupedTimes, AreNotBelowTheBoundOfAnyOfThem) {
  const Strategy& none = **find_strategy("none");
  holds_for_all_lengths(none, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const std::uint64_t bound_ns = planned(none, inputs, lengths).lower_bound_ns;
    for (const Strategy& strategy : tested_ours()) {
      if (strategy.spread != Spread::kDp) continue;
      const StepPlan plan = planned(strategy, inputs, lengths);
      RC_ASSERT(plan.lower_bound_ns == bound_ns);
      RC_ASSERT(step_ns(strategy, inputs, plan) >= bound_ns);
    }
  });
}

/// Where nothing is on the host, they take a number of ranks that hdp may take, too.
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

TEST(HdpTimes, AreNeverWorseThanNaive) {
  const Strategy& hdp = **find_strategy("hdp");
  const Strategy& naive = **find_strategy("naive_hdp");
  holds_for_all_lengths(naive, [&](const StrategyInputs& inputs, const Lengths& lengths) {
    const StepPlan ours = planned(hdp, inputs, lengths);
    const StepPlan theirs = planned(naive, inputs, lengths);
    RC_ASSERT(step_ns(hdp, inputs, ours) <= step_ns(hdp, inputs, theirs));
  });
}

}  // namespace
}  // namespace batchloom::planning
