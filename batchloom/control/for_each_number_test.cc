// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/for_each_number.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "batchloom/base/real_runtime.h"

namespace batchloom::control {
namespace {

TEST(ForEachNumber, DoesEachOnceByAnyNumberOfThreads) {
  const auto runtime = make_real_runtime();
  for (const std::uint32_t threads : {0U, 1U, 2U, 7U, 200U}) {
    std::vector<std::atomic<int>> done(100);
    EXPECT_TRUE(for_each_number(*runtime, threads, done.size(), [&](std::size_t number) {
                  ++done[number];
                  return Status::ok();
                }).is_ok());
    for (const auto& times : done) EXPECT_EQ(times, 1) << threads;
  }
  EXPECT_TRUE(for_each_number(*runtime, 2, 0, [](std::size_t) {
                return Status::invalid("nothing is to be done");
              }).is_ok());
}

TEST(ForEachNumber, TellsTheFailureOfTheLowestAndBeginsNoMore) {
  const auto runtime = make_real_runtime();
  for (const std::uint32_t threads : {1U, 2U, 7U}) {
    std::atomic<std::size_t> begun = 0;
    std::atomic<bool> later_failed = threads == 1;
    const Status failed = for_each_number(*runtime, threads, 1000, [&](std::size_t number) {
      ++begun;
      if (number < 20) return Status::ok();
      if (number == 20) later_failed.wait(false);
      later_failed = true;
      later_failed.notify_all();
      return Status::invalid(std::to_string(number));
    });
    EXPECT_EQ(failed.message(), "20") << threads;
    EXPECT_LT(begun, 1000U) << threads;
  }
}

}  // namespace
}  // namespace batchloom::control
