// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/rank_events.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_testing.h"

namespace batchloom::model {
namespace {

/// Whether ranks that follow the lists and wait for each other come to the end: an event is over
/// when all members of its task are at it and each receives what the one before sends.
bool all_end(const StepPlan& plan, const RankEvents& lists) {
  std::vector<std::uint32_t> next(lists.ranks.size(), 0);
  const auto at = [&](HdpRank rank) -> const RankEvent* {
    return next[rank.value] < lists.of(rank).size() ? &lists.of(rank)[next[rank.value]] : nullptr;
  };
  const auto ready = [&](const RankEvent& event) {
    const auto members = plan.members_of(plan.tasks[event.event.task.value]);
    return std::ranges::all_of(members, [&](HdpRank member) {
      const RankEvent* const mine = at(member);
      if (mine == nullptr || mine->event != event.event) return false;
      const RankEvent* const theirs = at(mine->send_to);
      return theirs != nullptr && theirs->event == event.event && theirs->receive_from == member &&
             theirs->ring_steps == mine->ring_steps && theirs->block_tokens == mine->block_tokens;
    });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (HdpRank rank; rank.value < next.size(); ++rank) {
      const RankEvent* const event = at(rank);
      if (event == nullptr || !ready(*event)) continue;
      for (const HdpRank member : plan.members_of(plan.tasks[event->event.task.value])) {
        ++next[member.value];
      }
      moved = true;
    }
  }
  for (HdpRank rank; rank.value < next.size(); ++rank) {
    if (at(rank) != nullptr) return false;
  }
  return true;
}

TEST(RankEvents, AreThoseOfTheSmallPlan) {
  const StepPlan plan = small_plan();
  const RankEvents lists = rank_events_of(plan);
  ASSERT_EQ(lists.ranks.size(), 4U);
  const std::span<const RankEvent> of_rank_0 = lists.of(HdpRank{0});
  ASSERT_EQ(of_rank_0.size(), 4U);
  const auto ring = std::ranges::find(
      of_rank_0, Event{.task = TaskIndex{0}, .phase = Phase::kForward}, &RankEvent::event);
  ASSERT_NE(ring, of_rank_0.end());
  // The ring is 2, 0, 1; the largest share of 13 tokens in six chunks is 5.
  EXPECT_EQ(*ring, (RankEvent{.event = ring->event,
                              .position = 1,
                              .send_to = HdpRank{1},
                              .receive_from = HdpRank{2},
                              .ring_steps = 2,
                              .block_tokens = 5}));
}

TEST(RankEvents, WhoIsAloneSendsNothing) {
  const StepPlan plan = small_plan();
  const RankEvents lists = rank_events_of(plan);
  for (const RankEvent& event : lists.of(HdpRank{3})) {
    if (event.event.task != TaskIndex{1}) continue;
    EXPECT_EQ(event.ring_steps, 0U);
    EXPECT_EQ(event.send_to, HdpRank{3});
    EXPECT_EQ(event.receive_from, HdpRank{3});
  }
}

RC_GTEST_PROP(RankEvents, OfAnyPlanAreProvenAndEnd, ()) {
  const StepPlan plan = *any_plan();
  const RankEvents lists = rank_events_of(plan);
  RC_ASSERT(lists.events.size() == 2 * plan.micro_batches.size());
  RC_ASSERT(check_rank_events(plan, lists).is_ok());
  RC_ASSERT(all_end(plan, lists));
}

RC_GTEST_PROP(RankEvents, TwoSwappedOnOneRankAreRefused, ()) {
  const StepPlan plan = *any_plan();
  RankEvents lists = rank_events_of(plan);
  RC_PRE(!lists.events.empty());
  const IndexRange range = *rc::gen::elementOf(lists.ranks);
  RC_PRE(range.size() >= 2);
  const auto i = *rc::gen::inRange(range.begin, range.end - 1);
  const auto j = *rc::gen::inRange(i + 1, range.end);
  std::swap(lists.events[i], lists.events[j]);
  RC_ASSERT(check_rank_events(plan, lists).is(ErrorKind::kInvalid));
}

// What the proof refuses it refuses for a reason: most of these would hang.
TEST(RankEvents, SwapsOfOneRankHang) {
  int hang = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const StepPlan plan = random_plan({.seed = seed, .ranks = 4, .samples = 12});
    const RankEvents lists = rank_events_of(plan);
    for (const IndexRange& range : lists.ranks) {
      for (std::uint32_t i = range.begin; i + 1 < range.end; ++i) {
        RankEvents swapped = lists;
        std::swap(swapped.events[i], swapped.events[i + 1]);
        EXPECT_FALSE(check_rank_events(plan, swapped).is_ok());
        ++all;
        if (!all_end(plan, swapped)) ++hang;
      }
    }
  }
  EXPECT_GT(hang, all / 10) << hang << " of " << all;
}

void expect_refused(const std::function<void(RankEvents&)>& mutate, const std::string& message) {
  const StepPlan plan = small_plan();
  RankEvents lists = rank_events_of(plan);
  mutate(lists);
  const Status status = check_rank_events(plan, lists);
  EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << "expected: " << message;
  EXPECT_THAT(status.message(), testing::HasSubstr(message));
}

TEST(RankEvents, EachFieldIsChecked) {
  const auto of_rank_0 = [](RankEvents& lists) -> RankEvent& { return lists.events[0]; };
  const std::string ring = "where the ring wants";
  expect_refused([&](RankEvents& l) { of_rank_0(l).send_to = HdpRank{3}; }, ring);
  expect_refused([&](RankEvents& l) { of_rank_0(l).receive_from = HdpRank{3}; }, ring);
  expect_refused([&](RankEvents& l) { ++of_rank_0(l).ring_steps; }, ring);
  expect_refused([&](RankEvents& l) { ++of_rank_0(l).block_tokens; }, ring);
  expect_refused([&](RankEvents& l) { of_rank_0(l).position = 0; },
                 "is member 0 of the ring; it is member 1");
  expect_refused([&](RankEvents& l) { of_rank_0(l).position = 9; },
                 "is member 9 of the ring; it is member 1");
  expect_refused([&](RankEvents& l) { of_rank_0(l).event.task = TaskIndex{99}; },
                 "none of the plan's");
  expect_refused([&](RankEvents& l) { of_rank_0(l).event.phase = static_cast<Phase>(2); },
                 "none of the plan's");
}

TEST(RankEvents, NoneIsLeftOutOrRunTwice) {
  expect_refused([](RankEvents& l) { --l.ranks[0].end; },
                 "rank 0 runs 3 events; its micro-batches have 4");
  expect_refused([](RankEvents& l) { ++l.ranks[0].end; },
                 "rank 0 runs 5 events; its micro-batches have 4");
  expect_refused([](RankEvents& l) { l.events[1] = l.events[0]; },
                 "event 1 of rank 0 (task 0 forward) stands where the plan has task");
  expect_refused([](RankEvents& l) { l.ranks.pop_back(); }, "events of 3 ranks; the plan has 4");
  expect_refused([](RankEvents& l) { l.ranks[0] = {4, 3}; }, "rank 0 has events [4, 3)");
  expect_refused([](RankEvents& l) { l.ranks[3].end = 1000; }, "rank 3 has events");
}

TEST(RankEvents, OfAnEmptyStepAreNone) {
  StepPlan plan;
  plan.ranks = {{0, 0}};
  EXPECT_TRUE(rank_events_of(plan).events.empty());
  EXPECT_TRUE(check_rank_events(plan, rank_events_of(plan)).is_ok());
}

}  // namespace
}  // namespace batchloom::model
