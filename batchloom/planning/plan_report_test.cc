// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategies.h"

namespace batchloom::planning {
namespace {

const std::string_view kModel = "h200-llama7b";

StrategyInputs inputs_on(std::string_view axes) {
  StrategyInputs inputs;
  inputs.costs = builtin_cost_model(kModel).value();
  inputs.topology = model::Topology::parse(axes).value();
  return inputs;
}

TEST(PlanReport, CountsWhatIsComputedButInNoSample) {
  const StrategyInputs inputs = inputs_on("dp=2 cp=4");
  // A group of four: 1,001 tokens make eight chunks of 126 or 125, so shares of 251 and 250. The
  // other group runs a filler on each of its ranks.
  const std::vector<std::uint32_t> lengths = {1'001};
  const auto plan = plan_with("two_level", inputs, samples_of(lengths)).value();
  const PlanReport report = report_of(plan, inputs.costs).value();
  std::uint32_t largest = 0;
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t tokens = 0;
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
    largest = std::max(largest, tokens);
  }
  EXPECT_EQ(report.padding_tokens, 4 * largest - 1'001 + 4);
  EXPECT_EQ(report.sample_tokens, 1'001u);
  EXPECT_EQ(report.longest_sample_tokens, 1'001u);
  EXPECT_EQ(report.largest_ring, 4u);
  EXPECT_EQ(report.micro_batches_most, 1u);
}

TEST(PlanReport, BeforeIsDealtInTurn) {
  StrategyInputs inputs = inputs_on("dp=2");
  const std::vector<std::uint32_t> lengths = {8'000, 10, 8'000, 10};
  const auto plan = plan_with("hdp", inputs, samples_of(lengths)).value();
  const PlanReport report = report_of(plan, inputs.costs).value();
  const auto cost = [&](std::uint32_t tokens) {
    return inputs.costs.layers *
           (inputs.costs.attention.time_ns(tokens) + inputs.costs.linear.time_ns(tokens));
  };
  EXPECT_EQ(report.before.largest_ns, 2 * cost(8'000));
  EXPECT_EQ(report.before.mean_ns, cost(8'000) + cost(10));
  EXPECT_GT(report.before.imbalance(), 1.5);
  EXPECT_LT(report.after.imbalance(), 1.01);
}

TEST(PlanReport, NamesAndNothing) {
  EXPECT_EQ(to_string(model::BoundTerm::kNone), "none");
  EXPECT_EQ(to_string(model::BoundTerm::kWork), "work");
  EXPECT_EQ(to_string(model::BoundTerm::kLongest), "longest");
  EXPECT_EQ(LoadSpread().imbalance(), 1);
}

RC_GTEST_PROP(PlanReport, AllRanksTimeIsBusyOrIdle, ()) {
  const auto lengths = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 30'000)));
  StrategyInputs inputs = inputs_on("dp=2 cp=4");
  for (const std::string_view strategy : {"hdp", "lpt"}) {
    const auto plan = plan_with(strategy, inputs, samples_of(lengths)).value();
    const PlanReport report = report_of(plan, inputs.costs).value();
    RC_ASSERT(report.busy.total_ns() + report.idle_ns == 8 * report.step_ns);
    RC_ASSERT(report.idle_most_ns <= report.step_ns);
    RC_ASSERT(report.after.largest_ns <= report.step_ns);
    RC_ASSERT(report.lower_bound_ns == plan.lower_bound_ns);
    RC_ASSERT(report.makespan_ns == plan.makespan_ns);
  }
}

}  // namespace
}  // namespace batchloom::planning
