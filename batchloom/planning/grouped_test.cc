// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/grouped.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/base/random.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::planning {
namespace {

using model::StepPlan;
using testing::HasSubstr;

constexpr GroupedBalance kAll[] = {GroupedBalance::kNone, GroupedBalance::kLpt,
                                   GroupedBalance::kKarmarkarKarp, GroupedBalance::kTwoLevel};

Result<StepPlan> try_plan(std::string_view axes, GroupedBalance balance,
                          std::vector<model::PlanSample> samples) {
  return plan_grouped(builtin_cost_model("h200-llama7b").value(),
                      model::Topology::parse(axes).value(),
                      {.balance = balance, .capacity_tokens = 1000}, std::move(samples));
}

StepPlan plan_of(std::string_view axes, GroupedBalance balance,
                 const std::vector<std::uint32_t>& tokens) {
  return try_plan(axes, balance, samples_of(tokens)).value();
}

RC_GTEST_PROP(GroupedPlan, IsSoundForAnyLengths, ()) {
  const auto dp = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto cp = *rc::gen::inRange<std::uint32_t>(1, 6);
  const std::string axes = *rc::gen::arbitrary<bool>() ? fmt::format("dp={} cp={}", dp, cp)
                                                       : fmt::format("cp={} pp=2 dp={}", cp, dp);
  const auto length = rc::gen::inRange<std::uint32_t>(1, 1000 * cp + 1);
  auto samples = samples_of(*rc::gen::container<std::vector<std::uint32_t>>(length));
  const GroupedBalance balance = *rc::gen::elementOf(std::vector(std::begin(kAll), std::end(kAll)));
  const StepPlan plan = try_plan(axes, balance, samples).value();
  const Status checked = check_plan(plan, {.capacity = model::Capacity{.tokens = 1000, .layers = 0},
                                           .equal_micro_batch_counts = true});
  RC_ASSERT(checked.to_string() == Status::ok().to_string());
  const CostModel costs = builtin_cost_model("h200-llama7b").value();
  RC_ASSERT(step_time(plan, costs, {.links = false}).value().step_ns == plan.makespan_ns);
  RC_ASSERT(plan.lower_bound_ns <= plan.makespan_ns);
  std::ranges::reverse(samples);
  RC_ASSERT(try_plan(axes, balance, samples).value() == plan);
}

std::vector<std::uint32_t> mixed_lengths() {
  std::vector<std::uint32_t> tokens;
  Random random(3);
  for (int i = 0; i < 400; ++i) {
    tokens.push_back(static_cast<std::uint32_t>(20 + random.below(i % 10 == 0 ? 3900 : 400)));
  }
  return tokens;
}

TEST(GroupedPlan, BalanceHelps) {
  std::vector<std::uint64_t> makespans;
  for (const GroupedBalance balance : kAll) {
    makespans.push_back(plan_of("dp=8 cp=4", balance, mixed_lengths()).makespan_ns);
  }
  EXPECT_LT(makespans[1], makespans[0]);
  EXPECT_LT(makespans[2], makespans[0]);
  EXPECT_LT(makespans[3], makespans[0]);
}

/// Of the n-th micro-batches of all groups, the largest difference.
std::uint64_t slot_spread(const StepPlan& plan) {
  std::uint64_t spread = 0;
  for (std::uint32_t slot = 0; slot < plan.ranks[0].size(); ++slot) {
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
      const auto& batch = plan.micro_batches_of(model::HdpRank(rank))[slot];
      least = std::min(least, plan.tasks[batch.task.value].cost_ns);
      most = std::max(most, plan.tasks[batch.task.value].cost_ns);
    }
    spread = std::max(spread, most - least);
  }
  return spread;
}

/// Of one group's micro-batches, the largest difference: the worst group's.
std::uint64_t spread_within(const StepPlan& plan) {
  std::uint64_t spread = 0;
  for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
    std::uint64_t least = UINT64_MAX;
    std::uint64_t most = 0;
    for (const model::MicroBatch& batch : plan.micro_batches_of(model::HdpRank(rank))) {
      least = std::min(least, plan.tasks[batch.task.value].cost_ns);
      most = std::max(most, plan.tasks[batch.task.value].cost_ns);
    }
    spread = std::max(spread, most - least);
  }
  return spread;
}

TEST(GroupedPlan, TwoLevelsMakeAGroupsSlotsAlike) {
  EXPECT_LT(spread_within(plan_of("dp=8 cp=4", GroupedBalance::kTwoLevel, mixed_lengths())) * 2,
            spread_within(plan_of("dp=8 cp=4", GroupedBalance::kLpt, mixed_lengths())));
}

TEST(GroupedPlan, TwoLevelsMakeSlotsAlikeAcrossGroups) {
  // Where micro-batches are not full: else the capacity decides who runs with whom.
  std::vector<std::uint32_t> tokens = mixed_lengths();
  tokens.resize(350);
  const auto two = slot_spread(plan_of("dp=8 cp=4", GroupedBalance::kTwoLevel, tokens));
  const auto lpt = slot_spread(plan_of("dp=8 cp=4", GroupedBalance::kLpt, tokens));
  EXPECT_LT(two, lpt);
}

TEST(GroupedPlan, GroupsWithLessRunFillers) {
  const StepPlan plan = plan_of("dp=2 cp=2", GroupedBalance::kLpt, {2000, 1000, 900});
  EXPECT_EQ(plan.ranks[0].size(), plan.ranks[2].size());
  const auto fillers = std::ranges::count_if(
      plan.micro_batches, [](const auto& micro_batch) { return micro_batch.pieces.size() == 0; });
  EXPECT_EQ(fillers, 0);
  const StepPlan uneven = plan_of("dp=2 cp=1", GroupedBalance::kNone, {1000, 10, 1000, 10});
  EXPECT_EQ(uneven.ranks[0].size(), 2U);
  EXPECT_EQ(uneven.ranks[1].size(), 2U);
  EXPECT_EQ(uneven.pieces_of(uneven.micro_batches_of(model::HdpRank(1))[1]).size(), 0U);
}

TEST(GroupedPlan, NamesTheSampleThatAGroupCannotHold) {
  const auto refused =
      try_plan("dp=2 cp=2", GroupedBalance::kLpt, samples_of(std::vector<std::uint32_t>{5, 2001}));
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(
      std::string(refused.status().message()),
      HasSubstr("sample 0:0:1:0 of 2001 tokens does not fit: a group of 2 ranks holds 1000"));
}

TEST(GroupedPlan, HasAName) {
  EXPECT_EQ(plan_of("dp=1", GroupedBalance::kNone, {}).strategy, "none");
  EXPECT_EQ(plan_of("dp=1", GroupedBalance::kLpt, {}).strategy, "lpt");
  EXPECT_EQ(plan_of("dp=1", GroupedBalance::kKarmarkarKarp, {}).strategy, "kk");
  EXPECT_EQ(plan_of("dp=1", GroupedBalance::kTwoLevel, {}).strategy, "two_level");
}

}  // namespace
}  // namespace batchloom::planning
