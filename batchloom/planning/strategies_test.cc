// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/strategies.h"

#include <gmock/gmock.h>

#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/plan_samples.h"

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

TEST(Strategies, PlanUnderTheirName) {
  StrategyInputs inputs;
  inputs.costs = builtin_cost_model("h200-llama7b").value();
  inputs.topology = model::Topology::parse("dp=2 cp=2").value();
  const std::vector<std::uint32_t> lengths = {9000, 100, 8192, 16'384, 1};
  for (const std::string_view name : strategy_names()) {
    const auto plan = plan_with(name, inputs, samples_of(lengths));
    ASSERT_TRUE(plan.is_ok()) << name << ": " << plan.status().to_string();
    EXPECT_EQ(plan->strategy, name);
    EXPECT_TRUE(
        check_plan(*plan, {.capacity = model::Capacity{.tokens = 8192, .layers = 32}}).is_ok())
        << name;
  }
}

/// Two inputs that differ in one thing, and whether a strategy takes it.
struct TakenInput {
  std::string_view name;
  bool StrategyTakes::* taken;
  StrategyInputs one;
  StrategyInputs other;
};

std::vector<TakenInput> inputs_in_pairs() {
  StrategyInputs inputs;
  inputs.costs = builtin_cost_model("h200-llama7b").value();
  inputs.topology = model::Topology::parse("dp=4 cp=4").value();
  std::vector<TakenInput> pairs = {{"min_share", &StrategyTakes::min_share, inputs, inputs},
                                   {"context", &StrategyTakes::context, inputs, inputs},
                                   {"offload", &StrategyTakes::offload, inputs, inputs},
                                   {"levels", &StrategyTakes::levels, inputs, inputs}};
  pairs[0].other.min_share_tokens = 1000;
  pairs[1].other.context_tokens = 65'536;
  pairs[2].other.offload = false;
  pairs[3].other.topology =
      model::Topology::create(inputs.topology.axes(), {{"wire", 16, 1'000'000'000, 1'000}}).value();
  return pairs;
}

TEST(Strategies, TakeWhatTheirRowsSay) {
  const std::vector<std::uint32_t> lengths = {32'000, 9000, 30'000, 4000, 1};
  for (const TakenInput& input : inputs_in_pairs()) {
    for (const Strategy& strategy : strategies()) {
      std::vector<std::uint32_t> taken = lengths;
      // What fits on the host alone: for all others, nothing to plan.
      if (input.name == "offload" && strategy.spread == Spread::kHdp) taken.push_back(300'000);
      const auto one = strategy.plan(input.one, samples_of(taken));
      auto other = strategy.plan(input.other, samples_of(taken));
      if (one.is_ok() && other.is_ok()) {
        other->topology = one->topology;
        other->digest = one->digest;
      }
      const bool same = one.is_ok() == other.is_ok() && (!one.is_ok() || *one == *other);
      EXPECT_EQ(!same, strategy.takes.*input.taken) << strategy.name << ", " << input.name;
    }
  }
}

TEST(Strategies, UnknownOnesAreToldTheNames) {
  const auto refused = plan_with("best", {}, {});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("'best'"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("pp_balance, hdp"));
}

}  // namespace
}  // namespace batchloom::planning
