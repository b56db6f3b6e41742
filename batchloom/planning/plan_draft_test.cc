// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_draft.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/hdp_testing.h"
#include "batchloom/planning/length_testing.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::SampleIndex;
using model::StepPlan;
using testing::ElementsAre;

model::Topology ranks(std::uint32_t count) {
  return model::Topology::create({{.axis = model::Axis::kDp, .extent = count}}).value();
}

/// One gang of all ranks.
StepPlan ring_of(std::uint32_t degree, std::uint32_t tokens) {
  PlanDraft draft;
  for (std::uint32_t rank = 0; rank < degree; ++rank) draft.members.emplace_back(rank);
  draft.samples = {SampleIndex(0)};
  draft.tasks = {{.time_ns = 1, .members = {0, degree}, .samples = {0, 1}}};
  draft.makespan_ns = 1;
  return make_plan(ranks(degree), "test", samples_of(Lengths{tokens}), draft);
}

RC_GTEST_PROP(PlanDraft, ARingTilesItsSample, ()) {
  const auto degree = *rc::gen::inRange<std::uint32_t>(1, 40);
  const auto tokens = *rc::gen::inRange<std::uint32_t>(degree, 5000);
  const StepPlan plan = ring_of(degree, tokens);
  const Status checked = check_plan(plan);
  RC_ASSERT(checked.is_ok());
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t held = 0;
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) held += piece.tokens();
    RC_ASSERT(held >= tokens / degree);
    RC_ASSERT(held <= (tokens + degree - 1) / degree);
  }
}

TEST(PlanDraft, ARingIsCutLikeAZigzag) {
  const StepPlan plan = ring_of(2, 9);  // Chunks of 3, 2, 2 and 2 tokens.
  ASSERT_EQ(plan.pieces.size(), 3U);
  EXPECT_EQ(plan.pieces[0], (model::Piece{SampleIndex(0), 0, 3}));
  EXPECT_EQ(plan.pieces[1], (model::Piece{SampleIndex(0), 7, 9}));
  EXPECT_EQ(plan.pieces[2], (model::Piece{SampleIndex(0), 3, 7})) << "neighbours are one";
}

TEST(PlanDraft, TasksGoByStartThenByTimeThenBySample) {
  PlanDraft draft;
  draft.members = {HdpRank(0), HdpRank(1), HdpRank(0), HdpRank(1)};
  draft.samples = {SampleIndex(0), SampleIndex(1), SampleIndex(2), SampleIndex(3)};
  draft.tasks = {
      {.start_ns = 5, .time_ns = 9, .members = {0, 1}, .samples = {0, 1}},
      {.start_ns = 7, .time_ns = 2, .members = {1, 2}, .samples = {3, 4}},
      {.start_ns = 0, .time_ns = 5, .members = {2, 3}, .samples = {2, 3}},
      {.start_ns = 0, .time_ns = 7, .members = {3, 4}, .samples = {1, 2}},
  };
  draft.makespan_ns = 14;
  const StepPlan plan = make_plan(ranks(2), "test", samples_of(Lengths{10, 20, 30, 40}), draft);
  ASSERT_TRUE(check_plan(plan).is_ok()) << check_plan(plan).to_string();
  std::vector<std::uint64_t> times;
  for (const model::Task& task : plan.tasks) times.push_back(task.cost_ns);
  EXPECT_THAT(times, ElementsAre(7, 5, 9, 2));
  EXPECT_EQ(plan.global_valid_labels, 10U + 20 + 30 + 40 - 4);
  EXPECT_EQ(plan.digest, model::plan_digest(plan));
  EXPECT_EQ(replay_ns(plan), 14U);
}

TEST(PlanDraft, WithoutStagesNobodyWaitsForRanksThatHeSharesNothingWith) {
  PlanDraft draft;
  draft.members = {HdpRank(0), HdpRank(1)};
  draft.samples = {SampleIndex(0), SampleIndex(1)};
  draft.tasks = {
      {.start_ns = 0, .time_ns = 5, .members = {0, 1}, .samples = {0, 1}},
      {.start_ns = 5, .time_ns = 3, .members = {1, 2}, .samples = {1, 2}},
  };
  draft.makespan_ns = 8;
  EXPECT_EQ(make_plan(ranks(2), "test", samples_of(Lengths{10, 20}), draft).makespan_ns, 5U);
  const auto stages = model::Topology::parse("pp=2 dp=2").value();
  EXPECT_EQ(make_plan(stages, "test", samples_of(Lengths{10, 20}), draft).makespan_ns, 8U);
}

TEST(PlanDraft, PacksHoldWholeSamples) {
  PlanDraft draft;
  draft.members = {HdpRank(1)};
  draft.samples = {SampleIndex(1), SampleIndex(0)};
  draft.tasks = {{.time_ns = 1, .members = {0, 1}, .samples = {0, 2}}};
  draft.makespan_ns = 1;
  const StepPlan plan = make_plan(ranks(2), "test", samples_of(Lengths{10, 20}), draft);
  ASSERT_TRUE(check_plan(plan).is_ok());
  EXPECT_THAT(plan.pieces, ElementsAre(model::Piece{SampleIndex(1), 0, 20},
                                       model::Piece{SampleIndex(0), 0, 10}));
  EXPECT_EQ(plan.ranks[0].size(), 0U) << "a rank without work has no micro-batch";
}

}  // namespace
}  // namespace batchloom::planning
