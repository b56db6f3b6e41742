// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/thread_times.h"

#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"

namespace batchloom {
namespace {

using std::chrono::milliseconds;

TEST(ThreadTimes, WorkCountsAndWaitingDoesNot) {
  const auto runtime = make_real_runtime();
  const ThreadTimes begin = thread_times();
  ASSERT_TRUE(runtime->sleep_until({.deadline = runtime->now() + milliseconds(50)}).is_ok());
  const ThreadTimes waited = thread_times() - begin;
  EXPECT_GE(waited.cpu, Duration(0));
  EXPECT_LT(waited.cpu, milliseconds(50));
  volatile std::uint64_t sum = 0;
  ThreadTimes worked;
  // Its end is that enough was counted: without counting it would have none.
  for (std::uint64_t i = 0; worked.cpu < milliseconds(5) && i < 10'000; ++i) {
    for (std::uint64_t j = 0; j < 100'000; ++j) sum = sum + j;
    worked = thread_times() - begin;
  }
  EXPECT_GE(worked.cpu, milliseconds(5));
}

TEST(ThreadTimes, AreOfTheCallingThreadAlone) {
  const auto runtime = make_real_runtime();
  const ThreadTimes begin = thread_times();
  ThreadTimes other;
  runtime
      ->spawn("other",
              [&](const std::stop_token&) {
                volatile std::uint64_t sum = 0;
                for (std::uint64_t j = 0; j < 20'000'000; ++j) sum = sum + j;
                other = thread_times();
              })
      ->join();
  EXPECT_GT(other.cpu, (thread_times() - begin).cpu);
}

TEST(ThreadTimes, BothAreSubtracted) {
  const ThreadTimes a{.cpu = Duration(7), .ready = Duration(5)};
  const ThreadTimes b{.cpu = Duration(3), .ready = Duration(4)};
  EXPECT_EQ(a - b, (ThreadTimes{.cpu = Duration(4), .ready = Duration(1)}));
}

}  // namespace
}  // namespace batchloom
