// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "batchloom/base/random.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/exhaustive.h"
#include "batchloom/planning/hdp_testing.h"
#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/ring_traffic.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::planning {
namespace {

using model::StepPlan;
using testing::HasSubstr;

constexpr std::uint32_t kCapacity = 8192;
constexpr std::uint32_t kLayers = 32;

StepPlan plan_of(std::uint32_t ranks, const std::vector<std::uint32_t>& tokens) {
  return planner_for(ranks).plan(samples_of(tokens)).value();
}

/// All that any plan of ours must be.
void expect_sound(const StepPlan& plan) {
  const Status checked =
      check_plan(plan, {.capacity = model::Capacity{.tokens = kCapacity, .layers = kLayers}});
  EXPECT_TRUE(checked.is_ok()) << checked.to_string();
  EXPECT_EQ(plan.digest, model::plan_digest(plan));
  EXPECT_GE(plan.makespan_ns, plan.lower_bound_ns);
  EXPECT_LE(replay_ns(plan), plan.makespan_ns);
}

TEST(HdpPlan, OfManySamplesIsCloseToItsBound) {
  std::vector<std::uint32_t> tokens;
  Random random(1);
  for (int i = 0; i < 4000; ++i)
    tokens.push_back(600 + static_cast<std::uint32_t>(random.below(7000)));
  for (int i = 0; i < 40; ++i)
    tokens.push_back(20'000 + static_cast<std::uint32_t>(random.below(200'000)));
  const StepPlan plan = plan_of(64, tokens);
  expect_sound(plan);
  EXPECT_LE(plan.makespan_ns, plan.lower_bound_ns / 100 * 102);
}

TEST(HdpPlan, ALongSampleAloneRunsWhereItIsFastest) {
  const StepPlan plan = plan_of(64, {100'000});
  expect_sound(plan);
  ASSERT_EQ(plan.tasks.size(), 1U);
  EXPECT_EQ(plan.tasks[0].members.size(), 100'000U / 4096);
  EXPECT_EQ(plan.makespan_ns, plan.lower_bound_ns);
  EXPECT_EQ(plan.bound_term, model::BoundTerm::kLongest);
}

TEST(HdpPlan, RingsCutTheirSampleEvenly) {
  const StepPlan plan = plan_of(8, {40'003});
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t tokens = 0;
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
    const std::uint32_t share = 40'003 / plan.tasks[0].members.size();
    EXPECT_GE(tokens, share);
    EXPECT_LE(tokens, share + 1);
  }
}

TEST(HdpPlan, WhatFitsOnNoNumberOfRanksGoesToTheHost) {
  const StepPlan plan = plan_of(4, {10 * kCapacity});
  expect_sound(plan);
  EXPECT_GT(plan.tasks[0].offload, model::OffloadRatio(0));
  EXPECT_LE(plan.tasks[0].offload, model::kOffloadAll);
}

TEST(HdpPlan, GiantsAndLongOnesShareAStep) {
  // The giant may run on half of the ranks, and the next one on all of them only.
  expect_sound(plan_of(4, {5 * kCapacity, 4 * kCapacity, 4 * kCapacity, 100}));
}

TEST(HdpPlan, NothingToDoIsAPlanToo) {
  const StepPlan plan = plan_of(3, {});
  expect_sound(plan);
  EXPECT_EQ(plan.makespan_ns, 0U);
  EXPECT_EQ(plan.ranks.size(), 3U);
}

TEST(HdpPlan, NamesTheSampleThatFitsNowhere) {
  const auto refused =
      planner_for(4, {.offload = false}).plan(samples_of(Lengths{100, 5 * kCapacity, 7}));
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("sample 0:0:1:0 of 40960 tokens fits on no number of ranks: 4 of them hold "
                        "8192 tokens each"));
  EXPECT_FALSE(planner_for(4).plan(samples_of(Lengths{4 * 16 * kCapacity + 1})).is_ok());
  EXPECT_TRUE(planner_for(4).plan(samples_of(Lengths{4 * 16 * kCapacity})).is_ok());
}

TEST(HdpPlan, RefusesSamplesThatAreNone) {
  const HdpPlanner planner = planner_for(2);
  EXPECT_EQ(planner.plan(samples_of(Lengths{5, 0})).status().message(),
            "sample 0:0:1:0 has no tokens");
  auto twice = samples_of(Lengths{5, 6});
  twice[1].id = twice[0].id;
  EXPECT_EQ(planner.plan(twice).status().message(), "sample 0:0:0:0 is given twice");
  const CostModel model = builtin_cost_model("h200-llama7b").value();
  EXPECT_TRUE(HdpPlanner::create(model, {}, {.capacity_tokens = 0}).is(ErrorKind::kInvalid));
}

constexpr std::uint64_t kClusterLink = 50'000'000'000;  // Bytes a second.

model::Topology islands_of_8(std::uint32_t ranks, std::uint64_t between = kClusterLink) {
  return model::Topology::create(
             {{.axis = model::Axis::kDp, .extent = ranks}},
             {{"island", 8, 400'000'000'000, 0}, {"cluster", ranks, between, 0}})
      .value();
}

StepPlan plan_on_islands(std::uint32_t ranks, const Lengths& tokens, const HdpOptions& options,
                         std::uint64_t between = kClusterLink) {
  return HdpPlanner::create(builtin_cost_model("h200-llama7b").value(),
                            islands_of_8(ranks, between), options)
      .value()
      .plan(samples_of(tokens))
      .value();
}

Lengths mixed_step() {
  Lengths tokens;
  Random random(3);
  for (int i = 0; i < 1500; ++i) {
    tokens.push_back(600 + static_cast<std::uint32_t>(random.below(5000)));
  }
  for (int i = 0; i < 300; ++i) {
    tokens.push_back(9000 + static_cast<std::uint32_t>(random.below(60'000)));
  }
  tokens.push_back(400'000);
  return tokens;
}

TEST(HdpPlan, KeepsGangsInIslandsAtNoCost) {
  const CostModel model = builtin_cost_model("h200-llama7b").value();
  const RankLevels levels(islands_of_8(128));
  const StepPlan flat = plan_of(128, mixed_step());
  const StepPlan islands = plan_on_islands(128, mixed_step(), {});
  expect_sound(islands);
  EXPECT_LE(islands.makespan_ns, flat.makespan_ns / 1000 * 1005);
  EXPECT_EQ(islands.lower_bound_ns, flat.lower_bound_ns);
  const RingTraffic before = ring_traffic(flat, levels, model);
  const RingTraffic after = ring_traffic(islands, levels, model);
  EXPECT_GT(before.gangs_apart, 10U);
  EXPECT_EQ(after.gangs_apart, 0U);
  EXPECT_LT(after.between_islands(), before.between_islands());
  EXPECT_LE(after.between_islands(), after.least_between_islands / 100 * 125);
}

TEST(HdpPlan, RingsCountInMakespanAndBound) {
  constexpr std::uint64_t kSlow = 10'000'000'000;
  const StepPlan without = plan_on_islands(128, mixed_step(), {}, kSlow);
  const StepPlan with = plan_on_islands(128, mixed_step(), {.ring = true}, kSlow);
  expect_sound(with);
  EXPECT_GT(with.lower_bound_ns, without.lower_bound_ns);
  EXPECT_LE(with.makespan_ns, with.lower_bound_ns / 100 * 103);
  // By the rules that all strategies are compared with, it takes as long as it says.
  const CostModel model = builtin_cost_model("h200-llama7b").value();
  const auto step_ns = static_cast<double>(step_time(with, model).value().step_ns);
  EXPECT_NEAR(step_ns / static_cast<double>(with.makespan_ns), 1, 0.0001);
  EXPECT_GT(step_time(without, model).value().step_ns, with.makespan_ns);
  const auto refused = HdpPlanner::create(builtin_cost_model("h200-llama7b").value(),
                                          model::Topology::parse("dp=8").value(), {.ring = true});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
}

TEST(HdpPlan, OffloadsWhereTheStepEndsEarlier) {
  // Alone, a sample runs on two ranks at least; three of them on three ranks are better off with
  // one each.
  const HdpOptions offload{.offload_where_earlier = true};
  const Lengths tokens(3, 12'000);
  const StepPlan without = plan_of(3, tokens);
  const StepPlan with = planner_for(3, offload).plan(samples_of(tokens)).value();
  expect_sound(with);
  EXPECT_LT(with.makespan_ns, without.makespan_ns);
  for (const model::Task& task : with.tasks) {
    EXPECT_EQ(task.members.size(), 1U);
    EXPECT_GT(task.offload, model::OffloadRatio(0));
  }
  // Where it does not help, nothing is copied: the long one decides when the step ends, and the
  // short one would end before on one rank too.
  const StepPlan plan =
      planner_for(128, offload).plan(samples_of(Lengths{400'000, 12'000})).value();
  for (const model::Task& task : plan.tasks) EXPECT_EQ(task.offload, model::OffloadRatio(0));
  EXPECT_EQ(plan.makespan_ns, plan.lower_bound_ns);
}

TEST(HdpPlan, OfAHandfulIsCloseToTheBestThereIs) {
  const CostModel model = builtin_cost_model("h200-llama7b").value();
  Random random(7);
  double ratio_sum = 0;
  constexpr int kCases = 300;
  for (int i = 0; i < kCases; ++i) {
    const auto ranks = static_cast<std::uint32_t>(1 + random.below(4));
    std::vector<std::uint32_t> tokens(1 + random.below(6));
    for (std::uint32_t& length : tokens) {
      length = static_cast<std::uint32_t>(1 + random.below(random.below(3) == 0 ? 40'000 : 9'000));
      length = std::min(length, ranks * kCapacity);
    }
    const StepPlan plan = planner_for(ranks, {.offload = false}).plan(samples_of(tokens)).value();
    expect_sound(plan);
    const HdpCosts costs = HdpCosts::create(model, {.ranks = ranks}).value();
    const std::uint64_t best = best_makespan_ns(costs, tokens).value() * model.layers;
    EXPECT_LE(plan.lower_bound_ns, best) << "case " << i;
    EXPECT_GE(plan.makespan_ns, best) << "case " << i;
    EXPECT_LE(plan.makespan_ns, best / 100 * 110) << "case " << i;
    ratio_sum += static_cast<double>(plan.makespan_ns) / static_cast<double>(best);
  }
  EXPECT_LE(ratio_sum / kCases, 1.02);
}

}  // namespace
}  // namespace batchloom::planning
