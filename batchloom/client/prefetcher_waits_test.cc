// SPDX-License-Identifier: Apache-2.0
// How a prefetcher is told of a stream's end, and what it counts as a stall.
#include <gtest/gtest.h>

#include "batchloom/client/prefetcher_testing.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PrefetcherWaits, EveryCallLooksAnewAtTheEnd) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    Reading reading(world);
    reading.expect_step(0);
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t polls = world.counted("client_polls");
      world.pass(seconds(30));
      EXPECT_LE(world.counted("client_polls"), polls + 1) << "nobody asked";
      reading.expect_end();
    }
    ASSERT_TRUE(store::reopen_stream(world.other(), {}).is_ok());
    EXPECT_TRUE(reading->next(world.within(seconds(5))).is(ErrorKind::kUnavailable));
    world.producer().append_small(1);
    reading.expect_step(1);
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    reading.expect_end();
    reading->seek(Step(1));
    reading.expect_step(1);
    reading.expect_end();
  });
}

TEST(PrefetcherWaits, ComesToTheEndByCallsThatAreShorterThanAReadOfTheHead) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    Reading reading(world);
    reading.expect_step(0);
    reading.expect_end();
    world.objects().next(
        {.operation = Operation::kGet, .prefix = "m/", .times = 1'000, .before = [&world] {
           world.pass(milliseconds(150));
         }});
    for (int calls = 1;; ++calls) {
      const Result<StepPtr> step = reading->next(world.within(milliseconds(100)));
      if (step.is_ok()) {
        EXPECT_EQ(*step, nullptr);
        break;
      }
      EXPECT_TRUE(step.is(ErrorKind::kUnavailable));
      ASSERT_LT(calls, 10) << "no call is told of the end";
    }
    world.objects().forget_script();
  });
}

/// The head is read while nobody waits: the answer is the next call's, but not for ever.
TEST(PrefetcherWaits, AnEndThatIsSeenBetweenTwoCallsIsTheNextOnes) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    Reading reading(world);
    reading.expect_step(0);
    world.objects().next(
        {.operation = Operation::kGet, .prefix = "m/", .times = 1'000, .before = [&world] {
           world.pass(milliseconds(20));
         }});
    const auto glance = [&] { return reading->next(world.within(milliseconds(1))); };
    if (const Result<StepPtr> first = glance(); first.is_ok()) {
      EXPECT_EQ(*first, nullptr);  // The head was being read when the step was taken.
    }
    int glances = 1;
    for (;; ++glances) {
      world.pass(seconds(4));
      const Result<StepPtr> end = glance();
      if (end.is_ok()) break;
      ASSERT_LT(glances, 5) << "no call is told of the end: " << end.status().to_string();
    }
    world.objects().forget_script();
  });
}

/// The stream may have been reopened since.
TEST(PrefetcherWaits, AnEndThatWasSeenLongAgoIsLookedUpAnew) {
  int kept = 0;
  on_any_schedule([&kept](ClientWorld& world) {
    world.producer().append_small(1);
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    Reading reading(world);
    reading.expect_step(0);
    reading.expect_end();
    world.objects().next(
        {.operation = Operation::kGet, .prefix = "m/", .times = 1'000, .before = [&world] {
           world.pass(milliseconds(20));
         }});
    const std::uint64_t before = world.counted("client_polls");
    if (reading->next(world.within(milliseconds(1))).is_ok()) return;  // The answer was quicker.
    world.pass(seconds(11));
    world.objects().forget_script();
    const std::uint64_t after = world.counted("client_polls");
    if (after > before) ++kept;
    reading.expect_end();
    EXPECT_GT(world.counted("client_polls"), after);
  });
  EXPECT_GT(kept, 0) << "no answer came after its call";
}

TEST(PrefetcherWaits, AnEndSeenByOthersIsLookedUpAnew) {
  on_any_schedule([](ClientWorld& world) {
    ASSERT_TRUE(store::end_stream(world.other(), {}).is_ok());
    static_cast<void>(must(world.feed().refresh({})));
    Reading reading(world);
    world.pass(seconds(1));
    ASSERT_TRUE(store::reopen_stream(world.other(), {}).is_ok());
    world.producer().append_small(1);
    reading.expect_step(0);
  });
}

TEST(PrefetcherWaits, AStallIsAWaitForWhatIsCommitted) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(2);
    static_cast<void>(must(world.feed().refresh({})));
    Reading reading(world, 0);
    reading.expect_step(0);
    EXPECT_EQ(world.counted("client_stalls"), 1U);
    const std::uint64_t ns = world.counted("client_stall_ns");
    EXPECT_GT(ns, 0U);
    reading.expect_step(1);
    EXPECT_EQ(world.counted("client_stalls"), 2U);
    EXPECT_GT(world.counted("client_stall_ns"), ns);
    EXPECT_TRUE(reading->next(world.within(seconds(9))).is(ErrorKind::kUnavailable));
    EXPECT_EQ(world.counted("client_stalls"), 2U) << "nothing was committed";
  });
}

/// Which the feed knows of, and whose bytes take a second each to come.
void commit_two_slow_steps(ClientWorld& world) {
  world.producer().append_small(2);
  static_cast<void>(must(world.feed().refresh({})));
  const auto slow = [&world] { world.pass(seconds(1)); };
  world.objects().next({.operation = Operation::kGet, .prefix = "d/", .times = 2, .before = slow});
}

TEST(PrefetcherWaits, AStallThatManyCallsWaitForIsOne) {
  on_any_schedule([](ClientWorld& world) {
    commit_two_slow_steps(world);
    Reading reading(world, 0);
    for (std::uint64_t number = 0; number < 2; ++number) {
      int calls = 1;
      while (reading->next(world.within(milliseconds(100))).is(ErrorKind::kUnavailable)) ++calls;
      EXPECT_GT(calls, 5);
      EXPECT_EQ(world.counted("client_stalls"), number + 1);
    }
    EXPECT_GT(world.counted("client_stall_ns"), 1'500'000'000U);
  });
}

TEST(PrefetcherWaits, AStallThatEndedBetweenTwoCallsDoesNotGoOn) {
  on_any_schedule([](ClientWorld& world) {
    commit_two_slow_steps(world);
    Reading reading(world, 0);
    EXPECT_TRUE(reading->next(world.within(milliseconds(100))).is(ErrorKind::kUnavailable));
    world.pass(seconds(5));
    reading.expect_step(0);
    reading.expect_step(1);
    EXPECT_EQ(world.counted("client_stalls"), 2U);
  });
}

}  // namespace
}  // namespace batchloom::client
