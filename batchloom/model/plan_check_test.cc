// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/plan_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "batchloom/model/plan_testing.h"

namespace batchloom::model {
namespace {

constexpr PlanCheckOptions kEverything = {.capacity = Capacity{.tokens = 7, .layers = 4},
                                          .equal_micro_batch_counts = true};

/// `check` of the small plan after `mutate` must be `invalid` and say `message`.
void expect_refused(const std::function<Status(const StepPlan&)>& check,
                    const std::function<void(StepPlan&)>& mutate, const std::string& message) {
  StepPlan plan = small_plan();
  mutate(plan);
  const Status status = check(plan);
  EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << "expected: " << message;
  EXPECT_NE(status.message().find(message), std::string::npos)
      << status.to_string() << "\nexpected: " << message;
}

void expect_no_structure(const std::function<void(StepPlan&)>& mutate, const std::string& message) {
  expect_refused(check_plan_structure, mutate, message);
  expect_refused([](const StepPlan& plan) { return check_plan(plan); }, mutate, message);
}

void expect_violation(const std::function<void(StepPlan&)>& mutate, const std::string& message,
                      const PlanCheckOptions& options = kEverything) {
  StepPlan plan = small_plan();
  mutate(plan);
  EXPECT_TRUE(check_plan_structure(plan).is_ok()) << check_plan_structure(plan).to_string();
  expect_refused([&](const StepPlan& p) { return check_plan(p, options); }, mutate, message);
}

RC_GTEST_PROP(PlanCheck, AcceptsValidPlans, ()) {
  const StepPlan plan = *any_plan();
  const Status status = check_plan(plan);
  RC_LOG() << status.to_string();
  RC_ASSERT(status.is_ok());
}

TEST(PlanCheck, AcceptsTheSmallPlan) {
  EXPECT_TRUE(check_plan(small_plan(), kEverything).is_ok())
      << check_plan(small_plan(), kEverything).to_string();
}

TEST(PlanCheck, AcceptsAnEmptyStep) {
  StepPlan plan;
  plan.ranks = {{0, 0}};
  EXPECT_TRUE(check_plan(plan, kEverything).is_ok());
}

TEST(PlanStructure, SamplesAndPieces) {
  expect_no_structure([](StepPlan& p) { p.samples[2].tokens = 0; }, "sample 1:0:2:1 has no tokens");
  expect_no_structure([](StepPlan& p) { p.samples[2].valid_labels = 4; },
                      "sample 1:0:2:1 has 4 valid labels and 3 tokens");
  expect_no_structure([](StepPlan& p) { p.pieces[0].sample = SampleIndex(4); },
                      "piece 0 is of sample number 4; there are 4");
  expect_no_structure([](StepPlan& p) { p.pieces[0].lo = p.pieces[0].hi; },
                      "of sample 0:0:7:0, which has 13");
  expect_no_structure([](StepPlan& p) { std::swap(p.pieces[0].lo, p.pieces[0].hi); },
                      "of sample 0:0:7:0, which has 13");
  expect_no_structure([](StepPlan& p) { p.pieces[0].hi = 14; },
                      "14) of sample 0:0:7:0, which has 13");
}

TEST(PlanStructure, Ranges) {
  expect_no_structure([](StepPlan& p) { p.ranks.pop_back(); }, "has 4 HDP ranks");
  expect_no_structure([](StepPlan& p) { ++p.ranks[1].begin; },
                      "rank 1 has micro-batches [3, 4); expected [2, up to 8)");
  expect_no_structure([](StepPlan& p) { p.ranks[3].end = 9; }, "rank 3 has micro-batches [6, 9)");
  expect_no_structure([](StepPlan& p) { p.ranks[3].end = 7; },
                      "micro-batches [7, 8) belong to no rank");
  expect_no_structure([](StepPlan& p) { p.ranks[2] = {4, 3}; }, "rank 2 has micro-batches [4, 3)");
  expect_no_structure([](StepPlan& p) { --p.micro_batches[1].pieces.begin; },
                      "micro-batch 1 has pieces [1, 3)");
  expect_no_structure([](StepPlan& p) { p.pieces.push_back(p.pieces[0]); },
                      "pieces [9, 10) belong to no micro-batch");
  expect_no_structure([](StepPlan& p) { ++p.tasks[0].members.end; },
                      "task 1 has members [3, 4); expected [4, up to 8)");
  expect_no_structure([](StepPlan& p) { p.members.emplace_back(0); },
                      "members [8, 9) belong to no task");
}

TEST(PlanStructure, IndicesAndEnums) {
  expect_no_structure([](StepPlan& p) { p.micro_batches[0].task = TaskIndex(4); },
                      "belongs to task 4; there are 4");
  expect_no_structure([](StepPlan& p) { p.tasks[1].offload = kOffloadAll + 1; },
                      "offload ratio 65537/65536");
  expect_no_structure([](StepPlan& p) { p.members[0] = HdpRank(4); },
                      "rank 4 is a member of a task; there are 4 ranks");
  expect_no_structure([](StepPlan& p) { p.events[0].task = TaskIndex(4); },
                      "an event is of task 4; there are 4");
  expect_no_structure([](StepPlan& p) { p.events[0].phase = static_cast<Phase>(2); },
                      "unknown phase 2");
  expect_no_structure([](StepPlan& p) { p.bound_term = static_cast<BoundTerm>(3); },
                      "bound's term 3 is unknown");
}

TEST(PlanCheck, EachTokenExactlyOnce) {
  expect_violation([](StepPlan& p) { p.samples[1].id = p.samples[0].id; },
                   "sample 0:0:7:0 is listed twice");
  expect_violation([](StepPlan& p) { ++p.samples[0].tokens; },
                   "tokens [13, 14) of sample 0:0:7:0 are on no rank");
  expect_violation([](StepPlan& p) { ++p.pieces[2].lo; },
                   "tokens [0, 1) of sample 0:1:0:0 are on no rank");
  // Rank 0 holds chunks 1 and 4, tokens [2, 4) and [8, 10); rank 1 holds [4, 6) and [6, 8).
  expect_violation([](StepPlan& p) { --p.pieces[0].hi; },
                   "tokens [3, 4) of sample 0:0:7:0 are on no rank");
  expect_violation([](StepPlan& p) { ++p.pieces[0].hi; },
                   "tokens [4, 5) of sample 0:0:7:0 are both on rank 0 and on rank 1");
  expect_violation([](StepPlan& p) { p.pieces[2] = p.pieces[0]; },
                   "of sample 0:0:7:0 are both on rank 0 and on rank 0");
}

/// Each sample whole, one after the other, on one rank.
StepPlan plan_of_one_rank(const std::vector<SampleId>& ids) {
  StepPlan plan;
  plan.topology = Topology::create({{.axis = Axis::kDp, .extent = 1}}).value();
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    plan.samples.push_back({.id = ids[i], .tokens = 1});
    plan.pieces.push_back({SampleIndex(i), 0, 1});
    plan.micro_batches.push_back({TaskIndex(i), {i, i + 1}});
    plan.tasks.push_back({.members = {i, i + 1}, .offload = {}});
    plan.members.emplace_back(0);
    plan.events.push_back({TaskIndex(i), Phase::kForward});
    plan.events.push_back({TaskIndex(i), Phase::kBackward});
  }
  plan.ranks.push_back({0, static_cast<std::uint32_t>(ids.size())});
  return plan;
}

TEST(PlanCheck, IdsThatHashAlikeAreToldApart) {
  // So that all of them want one place of any table of up to 1,024.
  std::vector<SampleId> ids;
  for (std::uint64_t i = 0; ids.size() < 300; ++i) {
    SampleId id;
    id.index = RecordIndex(i);
    if (hash_of(id) % 1024 == 0) ids.push_back(id);
  }
  std::ranges::reverse(ids);  // Ids that ascend are not looked up.
  EXPECT_TRUE(check_plan(plan_of_one_rank(ids)).is_ok());
  ids.front() = ids.back();
  const Status twice = check_plan(plan_of_one_rank(ids));
  EXPECT_EQ(twice.message(), fmt::format("sample {} is listed twice", to_string(ids.back())));
}

TEST(PlanCheck, ASampleStaysInOneTask) {
  StepPlan in_order = plan_of_one_rank({SampleId{}, SampleId{}});
  in_order.samples = {{.id = {}, .tokens = 2}};
  in_order.pieces[1] = {SampleIndex(0), 1, 2};
  EXPECT_EQ(check_plan(in_order).message(),
            "sample 0:0:0:0 is split between task 0 and task 1 (tokens [1, 2) on rank 0)");
  // Rank 0 runs task 0 (pieces 0 and 1) and task 2 (piece 2): piece 1 moves over.
  expect_violation(
      [](StepPlan& p) {
        p.micro_batches[0].pieces.end = 1;
        p.micro_batches[1].pieces.begin = 1;
      },
      "sample 0:0:7:0 is split between task 0 and task 2 (tokens [8, 10) on rank 0)");
}

RC_GTEST_PROP(PlanCheck, RefusesAnyOtherPiece, ()) {
  StepPlan plan = *any_plan();
  RC_PRE(!plan.pieces.empty());
  const Piece before = *rc::gen::elementOf(plan.pieces);
  Piece& piece = *std::ranges::find(plan.pieces, before);
  const auto samples = static_cast<std::uint32_t>(plan.samples.size());
  piece.sample = SampleIndex(*rc::gen::inRange<std::uint32_t>(0, samples));
  const std::uint32_t tokens = plan.samples[piece.sample.value].tokens;
  piece.lo = *rc::gen::inRange<std::uint32_t>(0, tokens);
  piece.hi = *rc::gen::inRange<std::uint32_t>(piece.lo + 1, tokens + 1);
  RC_ASSERT(check_plan(plan).is_ok() == (piece == before));
}

TEST(PlanCheck, RingsMatchWhoHoldsThePieces) {
  expect_violation([](StepPlan& p) { p.members[1] = p.members[0]; },
                   "rank 2 is twice in the ring of task 0");
  expect_violation([](StepPlan& p) { p.members[2] = HdpRank(3); },
                   "rank 3 is in the ring of task 0 but holds no micro-batch of it");
  // The rings are 2 0 1, 3, 0 and 1 2 3: each member of one moves to a neighbour.
  expect_violation(
      [](StepPlan& p) {
        p.tasks[0].members.end -= 1;
        p.tasks[1].members.begin -= 1;
      },
      "rank 1 holds a micro-batch of task 0 but is not in its ring");
  expect_violation(
      [](StepPlan& p) {
        p.tasks[2].members.end += 1;
        p.tasks[3].members.begin += 1;
      },
      "rank 1 is in the ring of task 2 but holds no micro-batch of it");
  expect_violation(
      [](StepPlan& p) {
        p.members.pop_back();
        p.tasks[3].members.end -= 1;
      },
      "rank 3 holds a micro-batch of task 3 but is not in its ring");
  expect_violation(
      [](StepPlan& p) {
        p.tasks.push_back({{8, 8}, OffloadRatio(0), 0});
        p.events.push_back({TaskIndex(4), Phase::kForward});
        p.events.push_back({TaskIndex(4), Phase::kBackward});
      },
      "task 4 has no members");
}

TEST(PlanCheck, RanksFollowTheOrderOfTheTasks) {
  expect_violation([](StepPlan& p) { std::swap(p.micro_batches[0].task, p.micro_batches[1].task); },
                   "rank 0 runs a micro-batch of task 0 after one of task 2");
  expect_violation([](StepPlan& p) { p.micro_batches[3].task = p.micro_batches[2].task; },
                   "rank 1 runs a micro-batch of task 0 after one of task 0");
}

TEST(PlanCheck, EveryTaskGoesForwardAndThenBackward) {
  expect_violation([](StepPlan& p) { std::swap(p.events[0], p.events[1]); },
                   "task 0 goes backward before forward");
  expect_violation([](StepPlan& p) { std::swap(p.events[0], p.events[2]); },
                   "task 1 goes forward where task 0 should");
  expect_violation([](StepPlan& p) { p.events[3] = p.events[1]; }, "task 0 goes backward twice");
  expect_violation([](StepPlan& p) { p.events[2] = p.events[0]; },
                   "task 0 goes forward where task 1 should");
  expect_violation([](StepPlan& p) { p.events.pop_back(); }, "task 3 never goes backward");
  expect_violation([](StepPlan& p) { p.events.resize(6); }, "task 3 never goes backward");
}

TEST(PlanCheck, Capacity) {
  expect_violation([](StepPlan&) {}, "task 1 on rank 3 holds 7 tokens; the capacity is 6",
                   {.capacity = Capacity{.tokens = 6}});
}

TEST(PlanCheck, OffloadBuysCapacity) {
  // 4 layers, all offloaded but two: 2 x m <= 4 x C. Half: 3 x m <= 4 x C.
  StepPlan plan = small_plan();
  const auto fits = [&](std::uint32_t offload, std::uint32_t capacity, std::uint32_t layers) {
    plan.tasks[1].offload = OffloadRatio(offload);
    plan.tasks[0].offload = plan.tasks[2].offload = kOffloadAll;
    return check_plan(plan, {.capacity = Capacity{.tokens = capacity, .layers = layers}}).is_ok();
  };
  EXPECT_TRUE(fits(65'536, 4, 4));
  EXPECT_FALSE(fits(65'536, 3, 4));
  EXPECT_TRUE(fits(65'536, 2, 7)) << "exactly full";
  EXPECT_TRUE(fits(32'768, 6, 4));
  EXPECT_FALSE(fits(32'768, 5, 4));
  EXPECT_FALSE(fits(0, 6, 4));
  EXPECT_FALSE(fits(65'536, 6, 2)) << "two layers always stay";
}

TEST(PlanCheck, CapacityDoesNotOverflow) {
  constexpr std::uint32_t kHuge = 1u << 31;
  StepPlan plan = small_plan();
  plan.samples[3].tokens = plan.pieces[2].hi = kHuge + 1;
  plan.tasks[2].offload = kOffloadAll;
  const PlanCheckOptions options = {.capacity = Capacity{.tokens = kHuge, .layers = kHuge}};
  EXPECT_TRUE(check_plan(plan, options).is_ok());
}

TEST(PlanCheck, CountsAndTotals) {
  const auto drop_filler = [](StepPlan& p) {
    p.micro_batches.pop_back();
    --p.ranks[3].end;
    p.members.pop_back();
    --p.tasks[3].members.end;
  };
  expect_violation(drop_filler, "rank 3 has 1 micro-batches and rank 0 has 2");
  StepPlan unequal = small_plan();
  drop_filler(unequal);
  EXPECT_TRUE(check_plan(unequal).is_ok()) << "hdp may have unequal counts";
  expect_violation([](StepPlan& p) { ++p.global_valid_labels; },
                   "the samples have 18 valid labels; the plan says 19");
  expect_violation([](StepPlan& p) { p.lower_bound_ns = p.makespan_ns + 1; },
                   "is below the lower bound");
}

}  // namespace
}  // namespace batchloom::model
