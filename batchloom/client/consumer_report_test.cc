// SPDX-License-Identifier: Apache-2.0
// How far its group is, as a consumer tells the store, and what that keeps.
#include <gtest/gtest.h>

#include <utility>

#include "batchloom/client/client_world_testing.h"
#include "batchloom/client/consumer.h"
#include "batchloom/client/cursor_reporter.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::client {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::Answer;

std::unique_ptr<Consumer> open_reporting(ClientWorld& world, ConsumerOptions options = {}) {
  return must(Consumer::open(world.feed(), std::move(options), {}));
}

void expect_delivered(Consumer& consumer, std::uint64_t number) {
  const StepPtr step = must(consumer.next({}));
  ASSERT_NE(step, nullptr) << "the end";
  EXPECT_EQ(step->step, Step(number));
  EXPECT_EQ(consumer.cursor(), Step(number + 1));
}

store::LiveCursor group_cursor(ClientWorld& world) {
  return must(store::read_live_cursor(world.other(), "g", {})).value();
}

std::unique_ptr<Consumer> open_group(ClientWorld& world, std::uint64_t start) {
  return open_reporting(world, {.start = Step(start), .report_group = "g", .report_steps = 3});
}

TEST(Consumer, ReportsItsGroupsCursor) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(3, 4);
    const auto consumer = open_group(world, 1);
    EXPECT_EQ(group_cursor(world).cursor, Step(1));
    EXPECT_EQ(group_cursor(world).keep_from, Step(1));
    for (std::uint64_t number = 1; number < 12; ++number) {
      expect_delivered(*consumer, number);
      world.pass(milliseconds(100));
      EXPECT_GE(group_cursor(world).cursor.value, number + 1 - number % 3)
          << "every third step at once";
    }
    world.pass(seconds(5));
    EXPECT_EQ(group_cursor(world).cursor, Step(12)) << "each in the end";
    ASSERT_TRUE(consumer->seek({world.stream().uuid(), Step(2), 0}, {}).is_ok());
    world.pass(seconds(5));
    EXPECT_EQ(group_cursor(world).cursor, Step(2));
    ASSERT_TRUE(consumer->close({}).is_ok());
    EXPECT_TRUE(group_cursor(world).closed);
    EXPECT_TRUE(consumer->next({}).is(ErrorKind::kCancelled));
    EXPECT_TRUE(consumer->close({}).is_ok()) << "again";
  });
}

TEST(Consumer, ReportsBeforeItWaitsForACommit) {
  on_any_schedule([](ClientWorld& world) {
    // A producer with a lead of 4, which gives up where the consumer never reports.
    const auto producer = world.start("producer", [&](const std::stop_token&) {
      for (int waits = 0; world.producer().steps().size() < 12 && waits < 1000;) {
        const auto cursor = must(store::read_live_cursor(world.other(), "g", {}));
        if (cursor && world.producer().steps().size() < cursor->cursor.value + 4) {
          world.producer().append_small(1);
        } else {
          world.pass(milliseconds(10));
          ++waits;
        }
      }
      EXPECT_TRUE(store::end_stream(world.other(), {}).is_ok());
    });
    const auto consumer = open_reporting(world, {.report_group = "g", .report_steps = 8});
    for (std::uint64_t number = 0; number < 12 && !testing::Test::HasFailure(); ++number) {
      expect_delivered(*consumer, number);
    }
    producer->join();
    EXPECT_LE(world.counted("client_reports"), 12U) << "not before each step";
  });
}

TEST(Consumer, ReportsPastSkippedSteps) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(5);
    for (const std::uint64_t step : {1U, 2U, 3U, 4U}) {
      static_cast<void>(must(store::skip_step(world.other(), Step(step), {})));
    }
    const auto consumer = open_reporting(world, {.report_group = "g", .report_steps = 8});
    expect_delivered(*consumer, 0);
    EXPECT_TRUE(consumer->next(world.within(seconds(5))).is(ErrorKind::kUnavailable));
    world.pass(seconds(5));
    EXPECT_EQ(group_cursor(world).cursor, Step(5));
    EXPECT_EQ(consumer->cursor(), Step(1));
    EXPECT_TRUE(consumer->next(world.within(seconds(5))).is(ErrorKind::kUnavailable));
    world.pass(seconds(5));
    EXPECT_EQ(world.counted("client_reports"), 1U) << "it did not move";
  });
}

TEST(Consumer, DoesNotReportBeforeItWaitsForARead) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(10);
    const auto consumer =
        open_reporting(world, {.prefetch_bytes = 0, .report_group = "g", .report_steps = 20});
    const Time begin = world.runtime().now();
    for (std::uint64_t number = 0; number < 10; ++number) {
      expect_delivered(*consumer, number);
      world.pass(milliseconds(20));
    }
    const auto silences =
        static_cast<std::uint64_t>((world.runtime().now() - begin) / kLongestSilence);
    EXPECT_LE(world.counted("client_reports"), silences);
  });
}

TEST(Consumer, GoingBackKeepsTheStepsFromThereOn) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(12);
    const auto consumer = open_group(world, 1);
    static_cast<void>(must(store::pin_step(world.other(), {"g", "a", Step(6)}, {})));
    for (std::uint64_t number = 1; number < 10; ++number) expect_delivered(*consumer, number);
    // The report of step 10 may be on its way.
    world.pass(Duration(world.runtime().random() % 100));
    ASSERT_TRUE(consumer->seek({world.stream().uuid(), Step(4), 0}, {}).is_ok());
    EXPECT_EQ(group_cursor(world).cursor, Step(4));
    EXPECT_LE(group_cursor(world).keep_from, Step(4));
    world.pass(seconds(5));
    EXPECT_LE(group_cursor(world).keep_from, Step(4)) << "no earlier report came late";
    expect_delivered(*consumer, 4);
    ASSERT_TRUE(consumer->seek({world.stream().uuid(), Step(8), 0}, {}).is_ok());
    world.pass(seconds(5));
    EXPECT_EQ(group_cursor(world).keep_from, Step(6));
    ASSERT_TRUE(consumer->seek({world.stream().uuid(), Step(7), 0}, {}).is_ok());
    EXPECT_EQ(group_cursor(world).keep_from, Step(6)) << "slower ranks may need it";
    EXPECT_EQ(group_cursor(world).cursor, Step(7));
    ASSERT_TRUE(consumer->close({}).is_ok());
    EXPECT_TRUE(consumer->seek({world.stream().uuid(), Step(1), 0}, {}).is(ErrorKind::kCancelled));
    EXPECT_TRUE(group_cursor(world).closed);
  });
}

TEST(Consumer, GoingBackToTrimmedStepsIsRefused) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(12);
    const auto consumer = open_group(world, 1);
    static_cast<void>(must(store::pin_step(world.other(), {"g", "a", Step(6)}, {})));
    for (std::uint64_t number = 1; number < 10; ++number) expect_delivered(*consumer, number);
    world.pass(seconds(5));
    EXPECT_EQ(group_cursor(world).keep_from, Step(6));
    world.trim(Step(6));
    const ConsumerState before = consumer->state();
    EXPECT_TRUE(is_error(consumer->seek({world.stream().uuid(), Step(4), 0}, {}),
                         ErrorKind::kNotFound, {"going back to step 4", "begins at step 6"}));
    EXPECT_EQ(consumer->state(), before);
    expect_delivered(*consumer, 10);
    world.pass(seconds(5));
    EXPECT_EQ(group_cursor(world).cursor, Step(11)) << "where it is";
    EXPECT_EQ(group_cursor(world).keep_from, Step(6));
    EXPECT_FALSE(group_cursor(world).closed);
  });
}

TEST(Consumer, AFailedWayBackLeavesItWhereItWas) {
  const QuietLog quiet;
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(12);
    const auto consumer = open_group(world, 1);
    for (std::uint64_t number = 1; number < 10; ++number) expect_delivered(*consumer, number);
    world.objects().next(
        {.operation = Operation::kPut, .prefix = "pin/", .answer = Answer::kForbidden, .times = 2});
    world.pass(Duration(world.runtime().random() % 100));
    if (consumer->seek({world.stream().uuid(), Step(4), 0}, {}).is_ok()) return;
    expect_delivered(*consumer, 10);
    world.objects().forget_script();
    ASSERT_TRUE(consumer->seek({world.stream().uuid(), Step(4), 0}, {}).is_ok());
    EXPECT_EQ(group_cursor(world).cursor, Step(4));
    expect_delivered(*consumer, 4);
  });
}

TEST(Consumer, AGroupThatVanishesKeepsItsCursor) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    open_group(world, 0).reset();
    EXPECT_FALSE(group_cursor(world).closed);
    const auto without = open_reporting(world);
    EXPECT_TRUE(without->close({}).is_ok());
    EXPECT_FALSE(group_cursor(world).closed) << "another's";
  });
}

TEST(Consumer, ItsCursorIsRefusedWhereTheStartWasTrimmedMeanwhile) {
  on_any_schedule(
      [](ClientWorld& world) {
        world.producer().append_small(5);
        static_cast<void>(must(world.feed().refresh({})));
        // Between the look at the head and the cursor's put.
        world.objects().next({.operation = Operation::kPut, .prefix = "pin/", .before = [&] {
                                world.trim(Step(2));
                              }});
        EXPECT_TRUE(
            Consumer::open(world.feed(), {.report_group = "g"}, {}).is(ErrorKind::kNotFound));
        EXPECT_TRUE(group_cursor(world).closed);
        EXPECT_TRUE(Consumer::open(world.feed(), {.start = Step(2), .report_group = "BAD"}, {})
                        .is(ErrorKind::kInvalid));
      },
      5);
}

TEST(Consumer, FailingReportsHoldNothingUp) {
  const QuietLog quiet;
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(10);
    const auto consumer = open_group(world, 0);
    world.objects().next({.operation = Operation::kGet,
                          .prefix = "pin/",
                          .answer = Answer::kUnavailable,
                          .times = 1'000'000});
    for (std::uint64_t number = 0; number < 10; ++number) expect_delivered(*consumer, number);
    world.pass(seconds(10));
    EXPECT_GT(world.counted("client_report_failures"), 1U);
    EXPECT_EQ(group_cursor(world).cursor, Step(0));
    world.objects().forget_script();
    world.pass(seconds(10));
    EXPECT_EQ(group_cursor(world).cursor, Step(10));
  });
}

}  // namespace
}  // namespace batchloom::client
