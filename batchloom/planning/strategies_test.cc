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

TEST(Strategies, UnknownOnesAreToldTheNames) {
  const auto refused = plan_with("best", {}, {});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("\"best\""));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("pp_balance, hdp"));
}

}  // namespace
}  // namespace batchloom::planning
