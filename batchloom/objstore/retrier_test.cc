// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/retrier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/sim_runtime.h"

namespace batchloom::objstore {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The waits between the attempts of one call that always fails, in virtual time.
struct Failed {
  std::vector<Duration> waits;
  Result<int> result = 0;
  std::map<std::string, std::uint64_t> counters;
};

Failed run_failing_call(const RetryOptions& options, Duration time_limit, std::uint64_t seed = 1) {
  Failed run;
  Counters counters;
  SimWorld world(seed);
  SimProcess& process = world.add_process("client");
  process.start("main", [&] {
    Retrier retrier(process, counters, options);
    std::optional<Time> last;
    run.result =
        retrier.run({.deadline = process.now() + time_limit, .stop = {}}, [&]() -> Result<int> {
          if (last) run.waits.push_back(process.now() - *last);
          last = process.now();
          return Status::unavailable("down");
        });
  });
  EXPECT_TRUE(world.run().is_ok());
  run.counters = counters.snapshot();
  return run;
}

TEST(Retrier, WaitsLongerEachTimeUpToABoundAndGivesUp) {
  std::vector<Duration> longest(11);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Failed run = run_failing_call({.max_attempts = 12}, std::chrono::hours(1), seed);
    EXPECT_TRUE(run.result.is(ErrorKind::kUnavailable));
    ASSERT_EQ(run.waits.size(), 11U);
    EXPECT_EQ(run.counters.at("objstore_retries"), 11U);
    for (std::size_t i = 0; i < 11; ++i) longest[i] = std::max(longest[i], run.waits[i]);
  }
  for (std::size_t i = 0; i < 11; ++i) {
    const Duration bound = std::min<Duration>(milliseconds(50) * (1 << i), seconds(5));
    EXPECT_LE(longest[i], bound) << i;
    EXPECT_GT(longest[i], bound * 9 / 10) << i;  // 200 uniform draws come close to the bound.
  }
}

TEST(Retrier, SpreadsClientsOverTheWholeWait) {
  int early = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Failed run = run_failing_call({.max_attempts = 2}, seconds(60), seed);
    early += run.waits.at(0) < milliseconds(25);
  }
  EXPECT_GT(early, 60);
  EXPECT_LT(early, 140);
}

TEST(Retrier, NeverWaitsBeyondTheDeadline) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Failed run = run_failing_call({.max_attempts = 100}, milliseconds(300), seed);
    EXPECT_TRUE(run.result.is(ErrorKind::kUnavailable));
    Duration sum{};
    for (const Duration wait : run.waits) sum += wait;
    EXPECT_LT(sum, milliseconds(300));
    EXPECT_NE(run.result.status().message().find("no time"), std::string_view::npos);
  }
}

TEST(Retrier, AStopEndsTheWait) {
  SimWorld world(1);
  Counters counters;
  SimProcess& process = world.add_process("client");
  process.start("main", [&] {
    Retrier retrier(process, counters,
                    {.first_backoff = seconds(100), .max_backoff = seconds(100)});
    std::stop_source source;
    const auto stopper = process.spawn("stopper", [&](std::stop_token) { source.request_stop(); });
    int attempts = 0;
    const auto result =
        retrier.run({.deadline = kNever, .stop = source.get_token()}, [&]() -> Result<int> {
          ++attempts;
          return Status::unavailable("down");
        });
    EXPECT_TRUE(result.is(ErrorKind::kCancelled));
    EXPECT_EQ(attempts, 1);
  });
  EXPECT_TRUE(world.run().is_ok());
}

TEST(Retrier, OtherErrorsAreFinal) {
  SimWorld world(1);
  Counters counters;
  SimProcess& process = world.add_process("client");
  process.start("main", [&] {
    Retrier retrier(process, counters, {});
    for (const ErrorKind kind : {ErrorKind::kInvalid, ErrorKind::kConflict, ErrorKind::kCorruption,
                                 ErrorKind::kExhausted, ErrorKind::kUnknownOutcome}) {
      int attempts = 0;
      const auto result = retrier.run({}, [&]() -> Result<int> {
        ++attempts;
        return Status(kind, "no");
      });
      EXPECT_TRUE(result.is(kind));
      EXPECT_EQ(attempts, 1);
    }
  });
  EXPECT_TRUE(world.run().is_ok());
}

TEST(RetryBudget, KeepsRetriesToATenthInTheLongRun) {
  const RetryOptions options;
  RetryBudget budget(options);
  std::uint64_t retries = 0;
  constexpr std::uint64_t kCalls = 100'000;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    budget.earn();
    for (int attempt = 1; attempt < options.max_attempts; ++attempt) retries += budget.spend();
  }
  EXPECT_LE(retries, options.retry_burst + kCalls / 10);
  EXPECT_GE(retries, kCalls / 10);
}

TEST(RetryBudget, SavesNoMoreThanTheBurst) {
  RetryBudget budget({.retry_burst = 3});
  for (int i = 0; i < 1000; ++i) budget.earn();
  int retries = 0;
  while (budget.spend()) ++retries;
  EXPECT_EQ(retries, 3);
}

TEST(Retrier, ASpentBudgetEndsTheCall) {
  const Failed run = run_failing_call({.max_attempts = 10, .retry_burst = 2}, seconds(60));
  EXPECT_EQ(run.waits.size(), 2U);
  EXPECT_TRUE(run.result.is(ErrorKind::kUnavailable));
  EXPECT_EQ(run.counters.at("objstore_retries_refused"), 1U);
}

}  // namespace
}  // namespace batchloom::objstore
