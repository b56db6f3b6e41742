// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/step_time.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/base/random.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp_testing.h"
#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/plan_draft.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::StepPlan;
using testing::ElementsAre;

/// Two layers. From 10 tokens on: attention n^2 ns, a quarter of it forward; the rest 10 n ns, 4 n
/// of it forward; 6 ns to launch; 10 bytes of keys and values for each token.
CostModel easy_costs() {
  const auto curve = [](std::uint64_t at_ten_ns, CostCurve::Growth growth) {
    return CostCurve::create({{10, at_ten_ns * 1000}}, growth).value();
  };
  CostModel costs;
  costs.attention = curve(100, CostCurve::Growth::kQuadratic);
  costs.attention_forward = curve(25, CostCurve::Growth::kQuadratic);
  costs.linear = curve(100, CostCurve::Growth::kLinear);
  costs.linear_forward = curve(40, CostCurve::Growth::kLinear);
  costs.launch_ns = 6;
  costs.layers = 2;
  costs.kv_bytes_per_token = 10;
  return costs;
}

/// Pairs joined by 2 bytes a nanosecond, all of them by 1, and 5 ns away from each other.
model::Topology pairs_of(std::uint32_t ranks) {
  return model::Topology::create(
             {{.axis = model::Axis::kDp, .extent = ranks}},
             {{"island", 2, 2'000'000'000, 0}, {"all", ranks, 1'000'000'000, 5}})
      .value();
}

/// A task of a plan: ranks, and samples of which each holds a share.
struct TaskRow {
  std::vector<std::uint32_t> members;
  std::vector<std::uint32_t> samples;
  model::OffloadRatio offload = {};
};

StepPlan plan_of(model::Topology topology, const Lengths& lengths,
                 const std::vector<TaskRow>& rows) {
  PlanDraft draft;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TaskDraft task{.start_ns = i, .time_ns = 1, .offload = rows[i].offload};
    task.members.begin = static_cast<std::uint32_t>(draft.members.size());
    for (const std::uint32_t rank : rows[i].members) draft.members.emplace_back(rank);
    task.members.end = static_cast<std::uint32_t>(draft.members.size());
    task.samples.begin = static_cast<std::uint32_t>(draft.samples.size());
    for (const std::uint32_t sample : rows[i].samples) draft.samples.emplace_back(sample);
    task.samples.end = static_cast<std::uint32_t>(draft.samples.size());
    draft.tasks.push_back(task);
  }
  return make_plan(std::move(topology), "test", samples_of(lengths), draft);
}

TEST(StepTime, OfAPackIsItsWork) {
  const StepPlan plan = plan_of(pairs_of(2), {20, 30}, {{{0}, {0, 1}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  // By layer: 400 + 900 of attention, 500 for 50 tokens, 6 to launch.
  EXPECT_EQ(time.step_ns, 2 * (400 + 900 + 500 + 6U));
  EXPECT_EQ(time.tasks[0].forward, (TimeParts{.compute_ns = 2 * (100 + 225 + 200 + 3)}));
  EXPECT_EQ(time.tasks[0].backward, (TimeParts{.compute_ns = 2 * (300 + 675 + 300 + 3)}));
  EXPECT_EQ(time.ranks[0].idle_ns, 0U);
  EXPECT_EQ(time.ranks[1].idle_ns, time.step_ns);
  EXPECT_THAT(time.bytes_by_level, ElementsAre(0, 0));
}

TEST(StepTime, OfARingCountsHopsThatTakeLongerThanItsSteps) {
  const StepPlan plan = plan_of(pairs_of(4), {40}, {{{0, 1, 2, 3}, {0}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  // Attention by layer and member: 100 forward, 300 backward; a step of the ring: 25 and 75. A hop
  // of 10 tokens: 100 bytes, and 5 ns between pairs; backward 200 bytes.
  const TimeParts forward{.compute_ns = 2 * (100 + 40 + 3), .ring_ns = 2 * 3 * (105 - 25)};
  const TimeParts backward{.compute_ns = 2 * (300 + 60 + 3), .ring_ns = 2 * 3 * (205 - 75)};
  EXPECT_EQ(time.tasks[0].forward, forward);
  EXPECT_EQ(time.tasks[0].backward, backward);
  EXPECT_EQ(time.step_ns, forward.total_ns() + backward.total_ns());
  // Two edges inside pairs and two between them: 30 tokens over each, by layer, once forward and
  // twice backward.
  EXPECT_THAT(time.bytes_by_level, ElementsAre(2 * 30 * 10 * 2 * 3, 2 * 30 * 10 * 2 * 3));
}

TEST(StepTime, OfARingGoesAtThePaceOfItsSlowestEdge) {
  // The way back from the last member to the first is inside a pair, and two edges are not.
  const StepPlan plan = plan_of(pairs_of(4), {40}, {{{0, 2, 3, 1}, {0}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  EXPECT_EQ(time.tasks[0].forward.ring_ns, 2U * 3 * (105 - 25));
  EXPECT_EQ(time.bytes_by_level[0], time.bytes_by_level[1]);
}

TEST(StepTime, OfARingInsideAPairUsesItsLinks) {
  const StepPlan plan = plan_of(pairs_of(4), {20}, {{{2, 3}, {0}}});
  const StepTime time = step_time(plan, easy_costs(), {.backward_bytes_factor = 5}).value();
  // A step: 50 / 2 forward, 150 / 2 backward; a hop: 100 bytes at 2 a nanosecond, 500 backward.
  EXPECT_EQ(time.tasks[0].forward.ring_ns, 2 * (50 - 25U));
  EXPECT_EQ(time.tasks[0].backward.ring_ns, 2 * (250 - 75U));
  EXPECT_THAT(time.bytes_by_level, ElementsAre(2 * 10 * 10 * 2 * 6, 0));
}

TEST(StepTime, OnlyTheOverlapHidesHops) {
  const StepPlan plan = plan_of(pairs_of(4), {40}, {{{0, 1, 2, 3}, {0}}});
  // Hops of 105 and 205, steps of 25 and 75, as above; 40 % of those are 10 and 30.
  const StepTime some = step_time(plan, easy_costs(), {.overlap_percent = 40}).value();
  EXPECT_EQ(some.tasks[0].forward.ring_ns, 2U * 3 * (105 - 10));
  EXPECT_EQ(some.tasks[0].backward.ring_ns, 2U * 3 * (205 - 30));
  const StepTime none = step_time(plan, easy_costs(), {.overlap_percent = 0}).value();
  EXPECT_EQ(none.tasks[0].forward.ring_ns, 2U * 3 * 105);
}

TEST(StepTime, HopsThatAreFasterThanStepsDoNotShow) {
  const StepPlan plan = plan_of(pairs_of(4), {4000}, {{{0, 1, 2, 3}, {0}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  EXPECT_EQ(time.ranks[2].busy.ring_ns, 0U);
  EXPECT_EQ(time.bytes_by_level[1], 2U * 3000 * 10 * 2 * 3);
  EXPECT_EQ(time.step_ns, step_time(plan, easy_costs(), {.links = false})->step_ns);
}

TEST(StepTime, ByteCountsFollowTheSharesThemselves) {
  // Shares of 3, 3 and 2 tokens: over the edge to a member goes all but its own.
  const model::Topology flat =
      model::Topology::create({{.axis = model::Axis::kDp, .extent = 3}}).value();
  const StepPlan plan = plan_of(flat, {8}, {{{0, 1, 2}, {0}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  EXPECT_THAT(time.bytes_by_level, ElementsAre((5 + 5 + 6) * 10 * 2 * 3));
  EXPECT_EQ(time.ranks[0].busy.ring_ns, 0U) << "without levels links take no time";
}

TEST(StepTime, GangsWaitForTheLastOfTheirMembers) {
  const StepPlan plan = plan_of(pairs_of(2), {20, 20, 10}, {{{0}, {0}}, {{0, 1}, {1}}, {{1}, {2}}});
  const StepTime time = step_time(plan, easy_costs(), {.links = false}).value();
  const std::uint64_t first = 2 * (400 + 200 + 6);
  const std::uint64_t gang = 2 * (200 + 100 + 6);
  const std::uint64_t last = 2 * (100 + 100 + 6);
  EXPECT_EQ(time.tasks[1].begin_ns, first);
  EXPECT_EQ(time.tasks[1].end_ns, first + gang);
  EXPECT_EQ(time.step_ns, first + gang + last);
  EXPECT_EQ(time.ranks[0].idle_ns, last);
  EXPECT_EQ(time.ranks[1].idle_ns, first);
  EXPECT_EQ(time.events.size(), 6U);
  EXPECT_EQ(time.events[2].begin_ns, first);
  EXPECT_EQ(time.events[3].end_ns, first + gang);
}

TEST(StepTime, OfAFillerIsThatOfOneToken) {
  const StepPlan plan = plan_of(pairs_of(2), {}, {{{0, 1}, {}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  EXPECT_EQ(time.step_ns, 2 * (100 + 6U)) << "of 10 tokens, where the curve begins; no attention";
  EXPECT_THAT(time.bytes_by_level, ElementsAre(0, 0));
}

TEST(StepTime, CopiesToTheHostCountWhereTheyTakeLonger) {
  CostModel costs = easy_costs();
  costs.activation_bytes_per_token = 100;
  costs.copy_bytes_per_s = 1'000'000'000;
  const model::OffloadRatio half(model::kOffloadAll.value / 2);
  const StepPlan plan = plan_of(pairs_of(2), {20}, {{{0}, {0}, half}});
  const StepTime time = step_time(plan, costs).value();
  // 1,000 bytes by layer; forward computes for 100 + 80, backward for 300 + 120.
  EXPECT_EQ(time.tasks[0].forward.copy_ns, 2 * (1000 - 180U));
  EXPECT_EQ(time.tasks[0].backward.copy_ns, 2 * (1000 - 420U));
  EXPECT_EQ(time.step_ns, 2 * (2000 + 6U));
}

TEST(StepTime, ThroughPipelineStagesIsTheTextbooks) {
  const model::Topology topology = model::Topology::parse("pp=2 dp=2").value();
  const StepPlan plan =
      plan_of(topology, {20, 20, 20, 20}, {{{0}, {0}}, {{1}, {1}}, {{0}, {2}}, {{1}, {3}}});
  const StepTime time = step_time(plan, easy_costs()).value();
  // Two micro-batches for each rank and one more for the bubble, of one layer by stage.
  EXPECT_EQ(time.step_ns, 3 * (400 + 200 + 6U));
  EXPECT_EQ(time.ranks[1].idle_ns, 400 + 200 + 6U);
  EXPECT_EQ(time.events.size(), 16U);
}

TEST(StepTime, RefusesPlansThatCannotBeWalked) {
  StepPlan plan = plan_of(pairs_of(2), {20}, {{{0, 1}, {0}}});
  plan.members.pop_back();
  EXPECT_TRUE(step_time(plan, easy_costs()).is(ErrorKind::kInvalid));
}

/// Links so fast that nothing waits for them.
model::Topology fast_links(std::uint32_t ranks) {
  return model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}},
                                 {{"all", ranks, 1'000'000'000'000'000'000, 0}})
      .value();
}

StepPlan hybrid_plan(const CostModel& costs, std::uint32_t ranks, const Lengths& lengths) {
  return HdpPlanner::create(costs, fast_links(ranks), {}).value().plan(samples_of(lengths)).value();
}

CostModel costs_without_copies() {
  CostModel costs = builtin_cost_model("h200-llama7b").value();
  costs.copy_bytes_per_s = 0;
  return costs;
}

RC_GTEST_PROP(StepTime, OfHybridPlansIsThatOfTheirTasks, ()) {
  const CostModel costs = costs_without_copies();
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 40);
  const auto length = rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(1, 9000),
                                     rc::gen::inRange<std::uint32_t>(1, ranks * 8192 + 1));
  const StepPlan plan = hybrid_plan(costs, ranks, *rc::gen::container<Lengths>(length));
  const StepTime time = step_time(plan, costs).value();
  for (std::size_t i = 0; i < plan.tasks.size(); ++i) {
    const TaskTime& task = time.tasks[i];
    RC_ASSERT(task.forward.total_ns() + task.backward.total_ns() == plan.tasks[i].cost_ns);
  }
  RC_ASSERT(time.step_ns == replay_ns(plan));
  RC_ASSERT(time.step_ns <= plan.makespan_ns);
  RC_ASSERT(step_time(plan, costs, {.links = false}).value().step_ns == time.step_ns);
  for (const RankTime& rank : time.ranks) {
    RC_ASSERT(rank.busy.total_ns() + rank.idle_ns == time.step_ns);
  }
}

TEST(StepTime, OfAHybridPlanIsItsMakespan) {
  const CostModel costs = costs_without_copies();
  Random random(5);
  for (int step = 0; step < 10; ++step) {
    Lengths lengths;
    for (std::uint32_t i = 0; i < 400; ++i) {
      lengths.push_back(static_cast<std::uint32_t>(1 + random.below(i % 20 == 0 ? 90'000 : 8000)));
    }
    const StepPlan plan = hybrid_plan(costs, 16, lengths);
    EXPECT_EQ(step_time(plan, costs)->step_ns, plan.makespan_ns) << "step " << step;
  }
}

}  // namespace
}  // namespace batchloom::planning
