// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/cursor_reporter.h"

#include <gtest/gtest.h>

#include "batchloom/client/client_world_testing.h"

namespace batchloom::client {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::Answer;

store::LiveCursor stored(ClientWorld& world) {
  return must(store::read_live_cursor(world.other(), "g", {})).value();
}

/// A world with twenty steps, and a group that opened at step 3.
void with_reporter(const std::function<void(ClientWorld&, CursorReporter&)>& body) {
  on_any_schedule([&](ClientWorld& world) {
    world.producer().append_small(5, 4);
    static_cast<void>(must(store::open_live_cursor(world.stream(), "g", Step(3), {})));
    world.objects().forget_requests();
    CursorReporter reporter(world.stream(), "g", Step(3));
    body(world, reporter);
  });
}

TEST(CursorReporter, ReportsTheNewestPosition) {
  with_reporter([](ClientWorld& world, CursorReporter& reporter) {
    world.pass(seconds(5));
    EXPECT_TRUE(world.objects().requests().empty()) << "there is no news";
    reporter.report(Step(5));
    EXPECT_TRUE(world.objects().requests().empty()) << "its caller waits for no request";
    world.pass(seconds(5));
    EXPECT_EQ(stored(world).cursor, Step(5));
    for (std::uint64_t cursor = 6; cursor < 16; ++cursor) reporter.report(Step(cursor));
    world.pass(seconds(5));
    EXPECT_EQ(stored(world).cursor, Step(15));
    EXPECT_LE(world.counted("client_reports"), 3U) << "those in between are left out";
    reporter.report(Step(4));
    world.pass(seconds(5));
    EXPECT_EQ(stored(world).cursor, Step(4)) << "after a seek back";
    EXPECT_EQ(world.counted("client_report_failures"), 0U);
  });
}

TEST(CursorReporter, TellsWhatWasPassedWithinASecond) {
  with_reporter([](ClientWorld& world, CursorReporter& reporter) {
    const Time begin = world.runtime().now();
    for (std::uint64_t cursor = 4; cursor < 16; ++cursor) {
      reporter.pass(Step(cursor));
      world.pass(milliseconds(1));
    }
    const auto silences =
        static_cast<std::uint64_t>((world.runtime().now() - begin) / kLongestSilence);
    EXPECT_LE(world.counted("client_reports"), silences) << "more may come";
    world.pass(seconds(60));
    EXPECT_EQ(stored(world).cursor, Step(15));
    EXPECT_LE(world.counted("client_reports"), silences + 1) << "then there was no news";
  });
}

TEST(CursorReporter, RepeatsAReportThatFailed) {
  const QuietLog quiet;
  with_reporter([](ClientWorld& world, CursorReporter& reporter) {
    world.objects().next({.operation = Operation::kGet,
                          .prefix = "pin/",
                          .answer = Answer::kUnavailable,
                          .times = 4});
    reporter.report(Step(5));
    world.pass(seconds(60));
    EXPECT_TRUE(world.objects().script_is_done());
    EXPECT_EQ(stored(world).cursor, Step(5));
    EXPECT_EQ(world.counted("client_report_failures"), 4U);
    EXPECT_EQ(world.counted("client_reports"), 1U);
  });
}

TEST(CursorReporter, OpensACursorAgainThatWasClosed) {
  const QuietLog quiet;
  with_reporter([](ClientWorld& world, CursorReporter& reporter) {
    ASSERT_TRUE(store::close_live_cursor(world.other(), "g", {}).is_ok());
    reporter.report(Step(7));
    world.pass(seconds(60));
    EXPECT_FALSE(stored(world).closed);
    EXPECT_EQ(stored(world).cursor, Step(7));
  });
}

TEST(CursorReporter, StopsAmidFailures) {
  const QuietLog quiet;
  with_reporter([](ClientWorld& world, CursorReporter& reporter) {
    world.objects().next({.operation = Operation::kGet,
                          .prefix = "pin/",
                          .answer = Answer::kUnavailable,
                          .times = 1'000'000});
    reporter.report(Step(5));
    world.pass(Duration(world.runtime().random() % 100));
    reporter.stop();
    reporter.report(Step(6));
    reporter.stop();
    EXPECT_EQ(stored(world).cursor, Step(3));
  });
}

}  // namespace
}  // namespace batchloom::client
