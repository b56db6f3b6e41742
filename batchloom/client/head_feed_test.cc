// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/head_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "batchloom/client/client_world_testing.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::Answer;
using store::HeadPtr;
using testing::ElementsAre;

/// From now on, requests take no time, and the times of polls are noted in ms.
void note_polls(ClientWorld& world, std::vector<std::int64_t>& times) {
  const Time begin = world.runtime().now();
  world.objects().before_each(
      [&world, &times, begin, polls = world.counted("client_polls")](std::size_t) mutable {
        if (std::exchange(polls, world.counted("client_polls")) == polls) return;
        times.push_back((world.runtime().now() - begin) / milliseconds(1));
      });
}

TEST(HeadFeed, HasSeenNothingBeforeItsFirstRead) {
  on_any_schedule(
      [](ClientWorld& world) {
        EXPECT_EQ(world.feed().seen(), nullptr);
        const HeadPtr head = must(world.feed().refresh({}));
        EXPECT_EQ(head->head, world.newest()->head);
        EXPECT_EQ(world.feed().seen(), head);
        EXPECT_EQ(world.counted("client_polls"), 1U);
      },
      1);
}

TEST(HeadFeed, AnswersFromWhatWasSeenWithoutARequest) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(3);
    const HeadPtr head = must(world.feed().refresh({}));
    world.objects().forget_requests();
    EXPECT_EQ(must(world.feed().wait_for_step(Step(2), {})), head);
    EXPECT_EQ(must(world.feed().wait_for_slot(head->head.slot, {})), head);
    EXPECT_TRUE(world.objects().requests().empty());
  });
}

TEST(HeadFeed, WaitsForACommit) {
  on_any_schedule([](ClientWorld& world) {
    const auto commits = world.start("producer", [&](const std::stop_token&) {
      for (int i = 0; i < 3; ++i) {
        world.pass(milliseconds(300));
        world.producer().append_small(1);
      }
    });
    const HeadPtr head = must(world.feed().wait_for_step(Step(2), {}));
    EXPECT_EQ(head->head.next_step, Step(3));
    commits->join();
  });
}

TEST(HeadFeed, WaitsForASlot) {
  on_any_schedule([](ClientWorld& world) {
    const Slot slot = world.newest()->head.slot + 2;
    const auto commits = world.start("producer", [&](const std::stop_token&) {
      world.pass(milliseconds(100));
      world.producer().append_small(2);
    });
    EXPECT_GE(must(world.feed().wait_for_slot(slot, {}))->head.slot, slot);
    commits->join();
  });
}

TEST(HeadFeed, TheEndOfAStreamEndsTheWait) {
  on_any_schedule([](ClientWorld& world) {
    const auto ends = world.start("operator", [&](const std::stop_token&) {
      world.pass(seconds(1));
      EXPECT_TRUE(store::end_stream(world.other(), {}).is_ok());
    });
    EXPECT_TRUE(must(world.feed().wait_for_step(Step(7), {}))->head.ended);
    ends->join();
  });
}

TEST(HeadFeed, PollsLessAndLessOftenAndAnewAfterNews) {
  on_any_schedule(
      [](ClientWorld& world) {
        std::vector<std::int64_t> times;
        note_polls(world, times);
        EXPECT_TRUE(world.feed()
                        .wait_for_step(Step(0), world.within(seconds(10)))
                        .is(ErrorKind::kUnavailable));
        EXPECT_THAT(times, ElementsAre(0, 50, 150, 350, 750, 1550, 3150, 5150, 7150, 9150));
        world.producer().append_small(1);
        times.clear();
        note_polls(world, times);
        EXPECT_TRUE(world.feed()
                        .wait_for_step(Step(1), world.within(seconds(3)))
                        .is(ErrorKind::kUnavailable));
        // The pause that began at 9,150 ms ends 1,150 ms later.
        EXPECT_THAT(times, ElementsAre(1150, 1200, 1300, 1500, 1900, 2700));
      },
      5);
}

TEST(HeadFeed, OnePollServesAllWaiters) {
  on_any_schedule([](ClientWorld& world) {
    std::vector<std::unique_ptr<Task>> waiters;
    for (int i = 0; i < 5; ++i) {
      waiters.push_back(world.start("waiter", [&](const std::stop_token&) {
        EXPECT_TRUE(world.feed().wait_for_step(Step(0), {}).is_ok());
      }));
    }
    world.pass(milliseconds(500));
    world.producer().append_small(1);
    for (const auto& waiter : waiters) waiter->join();
    // One waiter alone would poll at 0, 50, 150, 350 and 750 ms.
    EXPECT_LE(world.counted("client_polls"), 6U);
  });
}

TEST(HeadFeed, AnotherTakesOverWhereThePollerLeaves) {
  on_any_schedule([](ClientWorld& world) {
    const CallOptions soon = world.within(milliseconds(120));
    const auto stopped = world.start("stopped", [&](const std::stop_token& stop) {
      EXPECT_TRUE(world.feed().wait_for_step(Step(0), {.stop = stop}).is(ErrorKind::kCancelled));
    });
    const auto late = world.start("late", [&](const std::stop_token&) {
      EXPECT_TRUE(is_error(world.feed().wait_for_step(Step(0), soon).status(),
                           ErrorKind::kUnavailable, {"step 0 is not committed yet"}));
    });
    const auto patient = world.start("patient", [&](const std::stop_token&) {
      EXPECT_TRUE(world.feed().wait_for_step(Step(0), {}).is_ok());
    });
    world.pass(milliseconds(200));
    stopped->request_stop();
    world.pass(milliseconds(200));
    world.producer().append_small(1);
    for (Task* task : {stopped.get(), late.get(), patient.get()}) task->join();
  });
}

TEST(HeadFeed, SaysWhatItWaitedForAndWhatThereIs) {
  on_any_schedule(
      [](ClientWorld& world) {
        EXPECT_TRUE(is_error(
            world.feed().wait_for_step(Step(4), world.within(Duration(1))).status(),
            ErrorKind::kUnavailable, {"step 4 is not committed yet", "before a head was read"}));
        world.producer().append_small(1);
        EXPECT_TRUE(is_error(
            world.feed().wait_for_step(Step(4), world.within(seconds(1))).status(),
            ErrorKind::kUnavailable,
            {"step 4 is not committed yet", "m/00000000000000000003", "ends before step 1"}));
        EXPECT_TRUE(is_error(world.feed().wait_for_slot(Slot(9), world.within(seconds(1))).status(),
                             ErrorKind::kUnavailable, {"no slot 9 yet", "m/00000000000000000003"}));
      },
      1);
}

TEST(HeadFeed, AFailedPollIsThePollersAndCountsAsNoNews) {
  on_any_schedule([](ClientWorld& world) {
    static_cast<void>(must(world.feed().refresh({})));
    world.objects().next(
        {.operation = Operation::kGet, .prefix = "m/", .answer = Answer::kUnavailable, .times = 2});
    int failed = 0;
    std::vector<std::unique_ptr<Task>> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.push_back(world.start("waiter", [&](const std::stop_token&) {
        const Result<HeadPtr> head = world.feed().wait_for_step(Step(0), {});
        if (!head.is_ok()) ++failed;
        EXPECT_TRUE(head.is_ok() || head.is(ErrorKind::kUnavailable));
      }));
    }
    world.pass(seconds(5));
    world.producer().append_small(1);
    for (const auto& waiter : waiters) waiter->join();
    EXPECT_EQ(failed, 2);
    EXPECT_TRUE(world.objects().script_is_done());
  });
}

TEST(HeadFeed, ARefreshWakesWhoWaits) {
  int soon = 0;
  on_any_schedule([&](ClientWorld& world) {
    EXPECT_TRUE(
        world.feed().wait_for_step(Step(0), world.within(seconds(6))).is(ErrorKind::kUnavailable));
    const Time begin = world.runtime().now();
    const auto waiter = world.start("waiter", [&](const std::stop_token&) {
      EXPECT_TRUE(world.feed().wait_for_step(Step(0), {}).is_ok());
      if (world.runtime().now() - begin < milliseconds(500)) ++soon;
    });
    EXPECT_TRUE(world.runtime().sleep_until(world.within(milliseconds(100))).is_ok());
    world.producer().append_small(1);
    static_cast<void>(must(world.feed().refresh({})));
    waiter->join();
  });
  // The next poll was due after more than a second. Simulated time may jump there, but seldom does.
  EXPECT_GT(soon, 25);
}

}  // namespace
}  // namespace batchloom::client
