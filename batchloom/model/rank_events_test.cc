// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/rank_events.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
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

TEST(RankEvents, AFillerIsOneToken) {
  const StepPlan plan = small_plan();
  const RankEvents lists = rank_events_of(plan);
  for (const RankEvent& event : lists.events) {
    if (event.event.task != TaskIndex{3}) continue;
    EXPECT_EQ(event.block_tokens, 1U);
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
  expect_refused(
      [](RankEvents& l) {
        l.events.pop_back();
        --l.ranks[3].end;
      },
      "rank 3 runs 3 events; its micro-batches have 4");
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

/// `plan` with so many pipeline stages, which order its events.
StepPlan with_stages(StepPlan plan, std::uint32_t stages) {
  const auto ranks = static_cast<std::uint32_t>(plan.ranks.size());
  plan.topology = Topology::create({{Axis::kPp, stages}, {Axis::kDp, ranks}}).value();
  plan.events.clear();
  for (TaskIndex task; task.value < plan.tasks.size(); ++task) {
    plan.events.push_back({task, Phase::kForward});
    plan.events.push_back({task, Phase::kBackward});
  }
  return plan;
}

/// Whether stages that follow the lists come to the end, each event waiting for all members of its
/// task and for what the stage before sends: the oldest block that was not received must be of this
/// event, and of its size.
class StageWalk {
 public:
  StageWalk(const StepPlan& plan, const std::vector<RankEvents>& stages)
      : plan_(plan), stages_(stages), places_(stages.size()) {
    for (auto& places : places_) places.resize(plan.ranks.size());
  }

  bool all_end() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
        for (HdpRank rank; rank.value < plan_.ranks.size(); ++rank) moved |= step(stage, rank);
      }
    }
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      for (HdpRank rank; rank.value < plan_.ranks.size(); ++rank) {
        if (at(stage, rank) != nullptr || !places_[stage][rank.value].activations.empty())
          return false;
      }
    }
    return true;
  }

 private:
  struct Place {
    std::size_t next = 0;
    std::deque<std::pair<Event, std::uint32_t>> activations;
    std::deque<std::pair<Event, std::uint32_t>> gradients;
  };

  const RankEvent* at(std::size_t stage, HdpRank rank) const {
    const auto list = stages_[stage].of(rank);
    const std::size_t next = places_[stage][rank.value].next;
    return next < list.size() ? &list[next] : nullptr;
  }

  bool receives(std::size_t stage, const Event& event) const {
    return event.phase == Phase::kForward ? stage > 0 : stage + 1 < stages_.size();
  }

  bool ready(std::size_t stage, HdpRank rank, const Event& event) {
    const RankEvent* const mine = at(stage, rank);
    if (mine == nullptr || mine->event != event) return false;
    const RankEvent* const theirs = at(stage, mine->send_to);
    if (theirs == nullptr || theirs->event != event || theirs->receive_from != rank ||
        theirs->ring_steps != mine->ring_steps || theirs->block_tokens != mine->block_tokens) {
      return false;
    }
    if (!receives(stage, event)) return true;
    Place& place = places_[stage][rank.value];
    const auto& inbox = event.phase == Phase::kForward ? place.activations : place.gradients;
    return !inbox.empty() && inbox.front() == std::pair(event, mine->block_tokens);
  }

  bool step(std::size_t stage, HdpRank rank) {
    const RankEvent* const current = at(stage, rank);
    if (current == nullptr) return false;
    const Event event = current->event;
    const auto members = plan_.members_of(plan_.tasks[event.task.value]);
    for (const HdpRank member : members) {
      if (!ready(stage, member, event)) return false;
    }
    for (const HdpRank member : members) run(stage, member, *at(stage, member));
    return true;
  }

  void run(std::size_t stage, HdpRank rank, const RankEvent& event) {
    Place& place = places_[stage][rank.value];
    ++place.next;
    const bool forward = event.event.phase == Phase::kForward;
    if (receives(stage, event.event)) (forward ? place.activations : place.gradients).pop_front();
    const std::pair block(event.event, event.block_tokens);
    if (forward && stage + 1 < stages_.size()) {
      places_[stage + 1][rank.value].activations.push_back(block);
    }
    if (!forward && stage > 0) places_[stage - 1][rank.value].gradients.push_back(block);
  }

  const StepPlan& plan_;
  const std::vector<RankEvents>& stages_;
  std::vector<std::vector<Place>> places_;  // By stage and rank.
};

/// "F0 B0 ..." of one list.
std::string shown(std::span<const RankEvent> list) {
  std::string text;
  for (const RankEvent& event : list) {
    text += fmt::format("{}{} ", event.event.phase == Phase::kForward ? 'F' : 'B',
                        event.event.task.value);
  }
  return text;
}

TEST(StageEvents, AreTheTextbooks1F1B) {
  StepPlan plan;
  for (std::uint64_t seed = 0; plan.tasks.size() != 4; ++seed) {
    plan = random_plan({.seed = seed, .ranks = 1, .samples = 8});
  }
  const auto stages = stage_events_of(with_stages(plan, 3));
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(shown(stages[0].of(HdpRank{0})), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(shown(stages[1].of(HdpRank{0})), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(shown(stages[2].of(HdpRank{0})), "F0 B0 F1 B1 F2 B2 F3 B3 ");
}

TEST(StageEvents, MembersOfARingShareItsSlot) {
  const StepPlan plan = small_plan();  // Rings 2 0 1, 3, 0 and 1 2 3; two stages.
  EXPECT_THAT(least_slots(plan), testing::ElementsAre(0, 0, 1, 1));
  const auto stages = stage_events_of(plan);
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(shown(stages[0].of(HdpRank{0})), "F0 F2 B0 B2 ");
  EXPECT_EQ(shown(stages[0].of(HdpRank{3})), "F1 F3 B1 B3 ");
  EXPECT_EQ(shown(stages[1].of(HdpRank{3})), "F1 B1 F3 B3 ");
}

RC_GTEST_PROP(StageEvents, OfAnyPlanAreProvenAndEnd, ()) {
  const StepPlan plan = with_stages(*any_plan(), *rc::gen::inRange<std::uint32_t>(1, 6));
  const auto stages = stage_events_of(plan);
  RC_ASSERT(check_stage_events(plan, stages).is_ok());
  RC_ASSERT(StageWalk(plan, stages).all_end());
  RC_ASSERT(stages.back() == rank_events_of(plan));
}

RC_GTEST_PROP(StageEvents, OfOneStageFollowThePlan, ()) {
  const StepPlan plan = *any_plan();  // Backward at any place after forward.
  const auto stages = stage_events_of(plan);
  RC_ASSERT(stages.size() == 1U);
  RC_ASSERT(stages[0] == rank_events_of(plan));
  RC_ASSERT(check_stage_events(plan, stages).is_ok());
}

RC_GTEST_PROP(StageEvents, TwoSwappedOnOneRankAreRefused, ()) {
  const StepPlan plan = with_stages(*any_plan(), *rc::gen::inRange<std::uint32_t>(1, 5));
  auto stages = stage_events_of(plan);
  RankEvents& lists = stages[*rc::gen::inRange<std::size_t>(0, stages.size())];
  RC_PRE(!lists.events.empty());
  const IndexRange range = *rc::gen::elementOf(lists.ranks);
  RC_PRE(range.size() >= 2);
  const auto i = *rc::gen::inRange(range.begin, range.end - 1);
  const auto j = *rc::gen::inRange(i + 1, range.end);
  std::swap(lists.events[i], lists.events[j]);
  RC_ASSERT(check_stage_events(plan, stages).is(ErrorKind::kInvalid));
}

// What the proof refuses it refuses for a reason: whoever changes the order of what two stages send
// each other, or of a ring, would hang.
TEST(StageEvents, SwapsOfOnePhaseHang) {
  int all = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const StepPlan plan = with_stages(random_plan({.seed = seed, .ranks = 3, .samples = 10}), 3);
    const auto stages = stage_events_of(plan);
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      for (const IndexRange& range : stages[stage].ranks) {
        for (std::uint32_t i = range.begin; i + 1 < range.end; ++i) {
          auto swapped = stages;
          RankEvent& one = swapped[stage].events[i];
          RankEvent& other = swapped[stage].events[i + 1];
          std::swap(one, other);
          EXPECT_FALSE(check_stage_events(plan, swapped).is_ok());
          if (one.event.phase != other.event.phase) continue;
          ++all;
          EXPECT_FALSE(StageWalk(plan, swapped).all_end());
        }
      }
    }
  }
  EXPECT_GT(all, 100);
}

TEST(StageEvents, TheMessageNamesTheStage) {
  const StepPlan plan = small_plan();
  auto stages = stage_events_of(plan);
  ++stages[0].events[0].block_tokens;
  EXPECT_THAT(
      check_stage_events(plan, stages).message(),
      testing::StartsWith("stage 0: event 0 of rank 0 (task 0 forward) sends 2 x 6 tokens"));
  stages.pop_back();
  EXPECT_EQ(check_stage_events(plan, stages).message(),
            "there are events of 1 pipeline stages; the plan has 2");
}

TEST(StageEvents, OfTheLastStageAreThePlans) {
  StepPlan plan = small_plan();
  const auto stages = stage_events_of(plan);
  // Tasks 0 and 2 of rank 0 forward, and only then backward.
  std::rotate(plan.events.begin() + 1, plan.events.begin() + 2, plan.events.begin() + 5);
  ASSERT_TRUE(check_plan(plan).is_ok());
  EXPECT_THAT(check_stage_events(plan, stages).message(),
              testing::HasSubstr("stands where the plan has task 2 forward"));
}

}  // namespace
}  // namespace batchloom::model
