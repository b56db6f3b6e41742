// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, PausesGrowToTwoSecondsAndNoFurther) {
  std::array<Duration, 12> longest{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRuntime runtime(seed);
    Backoff backoff(runtime);
    Duration limit = milliseconds(10);
    for (Duration& most : longest) {
      const Time before = runtime.now();
      ASSERT_TRUE(backoff.wait({}).is_ok());
      const Duration pause = runtime.now() - before;
      EXPECT_LT(pause, limit);
      most = std::max(most, pause);
      limit = std::min<Duration>(limit * 2, milliseconds(2000));
    }
  }
  Duration limit = milliseconds(10);
  for (const Duration most : longest) {
    EXPECT_GT(most, limit / 2) << "the pause should use its range";
    limit = std::min<Duration>(limit * 2, milliseconds(2000));
  }
}

TEST(Backoff, DoesNotBeginAPauseThatTheDeadlineEnds) {
  SeededRuntime runtime;
  Backoff backoff(runtime);
  const CallOptions call = runtime.within(milliseconds(100));
  Status last;
  while (last.is_ok()) {
    last = backoff.wait(call);
    EXPECT_LT(runtime.now(), call.deadline);
  }
  EXPECT_TRUE(last.is(ErrorKind::kUnavailable)) << last.to_string();
}

TEST(Backoff, APassedDeadlineIsUnavailable) {
  SeededRuntime runtime;
  EXPECT_TRUE(Backoff(runtime).wait({.deadline = runtime.now()}).is(ErrorKind::kUnavailable));
}

TEST(Backoff, AStopCancels) {
  SeededRuntime runtime;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(Backoff(runtime).wait({.stop = stop.get_token()}).is(ErrorKind::kCancelled));
  EXPECT_EQ(runtime.now(), Time());
}

TEST(Backoff, OnlySomeErrorsAreTransient) {
  EXPECT_TRUE(is_transient(Status::unavailable("")));
  EXPECT_TRUE(is_transient(Status::conflict("")));
  EXPECT_FALSE(is_transient(Status::ok()));
  for (const Status& lasting :
       {Status::invalid(""), Status::not_found(""), Status::fenced(""), Status::unknown_outcome(""),
        Status::corruption(""), Status::exhausted(""), Status::cancelled(""),
        Status::internal("")}) {
    EXPECT_FALSE(is_transient(lasting)) << lasting.to_string();
  }
}

}  // namespace
}  // namespace batchloom::store
