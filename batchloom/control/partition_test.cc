// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace batchloom::control {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using Demand = std::vector<SourceDemand>;

SourceDemand on_cores(double samples, double sample_s) {
  return {.samples = samples, .thread_s = sample_s, .cpu_s = sample_s, .bytes = 1'000};
}

SourceDemand waiting(double samples, double thread_s, double cpu_s) {
  return {.samples = samples, .thread_s = thread_s, .cpu_s = cpu_s, .bytes = 1'000};
}

Partition divide(const Demand& sources, const PartitionLimits& limits,
                 std::optional<double> step_s = {}) {
  return partition(sources, limits, step_s).value();
}

TEST(Partition, OneSourceOnCoresTakesAllOfThem) {
  const Partition all = divide({on_cores(100, 0.01)}, {.cores = 8});
  EXPECT_EQ(all.threads, 8U);
  EXPECT_THAT(all.lanes.threads, ElementsAre(8U));
  EXPECT_DOUBLE_EQ(all.step_s, 1.0 / 8);  // 100 * 10 ms on 8 cores.
  EXPECT_EQ(all.bound, PartitionBound::kCores);
  EXPECT_EQ(all.bound_by, model::SourceId(0));
}

TEST(Partition, ATrainersPaceIsHeadroomTimesWhatIsBusyRoundedToATier) {
  // 20 * 10 ms in steps of 100 ms: 2 threads are busy, 2.5 with headroom, so 4. 4 * 10 ms: 0.5.
  const Partition paced = divide({on_cores(20, 0.01), on_cores(4, 0.01)}, {.cores = 16}, 0.1);
  EXPECT_THAT(paced.busy, ElementsAre(DoubleNear(2.5, 1e-9), DoubleNear(0.5, 1e-9)));
  EXPECT_THAT(paced.lanes.of_source, ElementsAre(0U, 1U));
  EXPECT_THAT(paced.lanes.threads, ElementsAre(4U, 1U));
  EXPECT_EQ(paced.threads, 5U);
  EXPECT_EQ(paced.bound, PartitionBound::kTrainer);
}

TEST(Partition, ScarceThreadsGoToWhoeverHasMostToDoForEach) {
  // Parts of 7, 3 and 1: of 8 threads each has one, then 7/1, 7/2, 3/1, 7/3 and 7/4 are the most.
  const Partition scarce =
      divide({on_cores(7, 0.1), on_cores(3, 0.1), on_cores(1, 0.1)}, {.cores = 8});
  EXPECT_THAT(scarce.lanes.threads, ElementsAre(5U, 2U, 1U));
  EXPECT_EQ(scarce.bound_by, model::SourceId(0));
}

TEST(Partition, SmallSourcesShareALane) {
  // At 1 s: busy 2.5, and 3 * 0.125, which together need one thread.
  const Partition shared = divide(
      {on_cores(1, 0.1), on_cores(20, 0.1), on_cores(1, 0.1), on_cores(1, 0.1)}, {.cores = 8}, 1);
  EXPECT_THAT(shared.lanes.of_source, ElementsAre(1U, 0U, 1U, 1U));
  EXPECT_THAT(shared.lanes.threads, ElementsAre(4U, 1U));
}

TEST(Partition, ALaneThatIsSharedHasThreadsForAllWhoShareIt) {
  // At 1 s: 10 * 0.125 busy threads, so 2.
  const Partition shared = divide(Demand(10, on_cores(1, 0.1)), {.cores = 8}, 1);
  EXPECT_THAT(shared.lanes.threads, ElementsAre(2U));
}

TEST(Partition, WhoTakesMostOfWhatBoundsIsNamed) {
  const Demand sources = {waiting(10, 0.5, 0.001), waiting(10, 0.02, 0.02)};
  const Partition by_threads = divide(sources, {.cores = 2});
  EXPECT_EQ(by_threads.bound, PartitionBound::kThreads);
  EXPECT_EQ(by_threads.bound_by, model::SourceId(0));
  const Partition by_cores = divide(sources, {.cores = 2, .threads_per_core = 1'000});
  EXPECT_EQ(by_cores.bound, PartitionBound::kCores);
  EXPECT_EQ(by_cores.bound_by, model::SourceId(1));
}

TEST(Partition, WithMoreSourcesThanThreadsTheSmallestShare) {
  const Partition crowded = divide(
      {on_cores(2, 0.1), on_cores(5, 0.1), on_cores(3, 0.1), on_cores(4, 0.1)}, {.cores = 2});
  EXPECT_THAT(crowded.lanes.of_source, ElementsAre(1U, 0U, 1U, 1U));
  EXPECT_THAT(crowded.lanes.threads, ElementsAre(1U, 1U));
  const Partition alone = divide({on_cores(2, 0.1), on_cores(5, 0.1)}, {.cores = 1});
  EXPECT_THAT(alone.lanes.of_source, ElementsAre(0U, 0U));
  EXPECT_THAT(alone.lanes.threads, ElementsAre(1U));
}

TEST(Partition, WhatWaitsForStorageTakesMoreThreadsThanCores) {
  // As fast as 2 cores are, a step takes 100 * 1 ms / 2 = 50 ms; 100 * 2 ms of waiting in it are 4
  // threads, 5 with headroom: 7 for 7.5 busy ones.
  const Partition slow = divide({waiting(100, 0.003, 0.001)}, {.cores = 2});
  EXPECT_EQ(slow.threads, 7U);
  EXPECT_EQ(slow.bound, PartitionBound::kCores);
  const Partition slower = divide({waiting(100, 0.1, 0.001)}, {.cores = 2});
  EXPECT_EQ(slower.threads, 8U) << "4 for each core";
  EXPECT_EQ(slower.bound, PartitionBound::kThreads);
  EXPECT_DOUBLE_EQ(slower.step_s, 10.0 / 8);
  const Partition never_on_a_core = divide({waiting(100, 0.1, 0)}, {.cores = 2});
  EXPECT_EQ(never_on_a_core.threads, 8U);
}

TEST(Partition, ALaneBindsWhereCoresWouldIdleWithAllThreadsInIt) {
  // 2 cores and 1 thread for what waits; 3 threads in source 0 keep 1.5 cores busy.
  const Partition mixed =
      divide({waiting(50, 0.02, 0.01), waiting(50, 0.0103, 0.01)}, {.cores = 2});
  EXPECT_EQ(mixed.threads, 3U);
  EXPECT_THAT(mixed.lanes.binds, ElementsAre(true, false));
  // A trainer's pace needs but one thread of 16 cores for each: no core is kept by others.
  const Partition paced = divide({on_cores(4, 0.01), on_cores(4, 0.01)}, {.cores = 16}, 0.1);
  EXPECT_THAT(paced.lanes.threads, ElementsAre(1U, 1U));
  EXPECT_THAT(paced.lanes.binds, ElementsAre(false, false));
  // So many threads that those of a source that waits are enough for the cores.
  const Partition many = divide({waiting(50, 0.02, 0.01), waiting(50, 0.04, 0.002)}, {.cores = 2});
  EXPECT_EQ(many.threads, 8U);
  EXPECT_THAT(many.lanes.binds, ElementsAre(false, true));
  EXPECT_THAT(divide(Demand{{.samples = 5}, {}}, {.cores = 8}).lanes.binds, ElementsAre(false))
      << "nothing is known";
}

TEST(Partition, ASpeckOfWaitingAddsNoThread) {
  EXPECT_EQ(divide({waiting(100, 0.0105, 0.01)}, {.cores = 4}).threads, 4U);
}

TEST(Partition, ThreadsAreNoMoreThanOrdersThatFit) {
  PartitionLimits limits{.cores = 8, .memory_bytes = 5'000, .order_bytes = 1'500};
  EXPECT_EQ(divide({on_cores(100, 0.01)}, limits).threads, 3U);  // 3 orders of 1,500 bytes.
  EXPECT_EQ(divide({on_cores(100, 0.01)}, limits).orders_bytes, 4'500U);
  limits.order_bytes = 10;  // A sample is 1,000.
  EXPECT_EQ(divide({on_cores(100, 0.01)}, limits).threads, 5U);
  EXPECT_EQ(divide({on_cores(1, 0.01)}, {.cores = 8, .memory_bytes = 5'000}).orders_bytes, 5'000U)
      << "a step has but one sample";
}

TEST(Partition, ASampleThatDoesNotFitIsRefusedWithTheArithmetic) {
  Demand sources = {on_cores(1, 0.01), on_cores(1, 0.01)};
  sources[1].bytes = 3 << 20;
  const auto refused = partition(sources, {.memory_bytes = 2 << 20}, {});
  ASSERT_TRUE(refused.is(ErrorKind::kExhausted));
  EXPECT_THAT(refused.status().to_string(),
              HasSubstr("a sample takes 3145728 bytes, and loaders may hold 2 MiB"));
  sources[1].samples = 0;
  EXPECT_TRUE(partition(sources, {.memory_bytes = 2 << 20}, {}).is_ok()) << "nobody draws it";
}

TEST(Partition, WhereNothingIsKnownThereIsOneThread) {
  const Partition unknown = divide(Demand{{.samples = 5}, {}}, {.cores = 8});
  EXPECT_EQ(unknown.threads, 1U);
  EXPECT_EQ(unknown.bound_by, std::nullopt);
  EXPECT_EQ(unknown.step_s, 0);
}

Demand any_demand(bool waits) {
  const auto number = [](int most) { return 1.0 * *rc::gen::inRange(0, most); };
  Demand sources;
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i) {
    SourceDemand source = on_cores(number(200), number(1'000) / 1e5);
    if (waits) source.thread_s += number(1'000) / 1e5;
    source.bytes = number(4'000'000);
    sources.push_back(source);
  }
  return sources;
}

std::optional<double> any_pace() {
  const int pace_ms = *rc::gen::inRange(0, 3'000);
  return pace_ms == 0 ? std::nullopt : std::optional(pace_ms / 1e3);
}

RC_GTEST_PROP(Partition, EverySourceHasAThreadAndAllKeepToTheLimits, ()) {
  const bool waits = *rc::gen::arbitrary<bool>();
  const Demand sources = any_demand(waits);
  const PartitionLimits limits{.cores = *rc::gen::inRange(1U, 20U),
                               .threads_per_core = *rc::gen::inRange(1U, 6U),
                               .memory_bytes = *rc::gen::inRange<std::uint64_t>(4'000'000, 1 << 26),
                               .order_bytes = *rc::gen::inRange<std::uint64_t>(1, 4'000'000)};
  const Partition made = divide(sources, limits, any_pace());
  RC_ASSERT(made.lanes.of_source.size() == sources.size());
  for (const std::uint32_t lane : made.lanes.of_source) RC_ASSERT(lane < made.lanes.threads.size());
  for (std::uint32_t lane = 0; lane < made.lanes.threads.size(); ++lane) {
    RC_ASSERT(made.lanes.threads[lane] >= 1U);
    RC_ASSERT(std::ranges::count(made.lanes.of_source, lane) >= 1);
  }
  RC_ASSERT(made.lanes.binds.size() == made.lanes.threads.size());
  if (!waits) RC_ASSERT(std::ranges::count(made.lanes.binds, true) == 0);
  const auto& threads = made.lanes.threads;
  RC_ASSERT(made.threads == std::accumulate(threads.begin(), threads.end(), 0U));
  RC_ASSERT(made.threads <= (waits ? limits.cores * limits.threads_per_core : limits.cores));
  RC_ASSERT(made.orders_bytes <= limits.memory_bytes);
}

RC_GTEST_PROP(Partition, MoreToDoForOneSourceNeverTakesThreadsFromIt, ()) {
  const auto threads_of_first = [](double sample_s, std::optional<double> pace) {
    const Partition made =
        divide({on_cores(100, sample_s), on_cores(70, 0.01)}, {.cores = 32}, pace);
    return std::pair(made.busy[0], made.lanes.threads[made.lanes.of_source[0]]);
  };
  const std::optional<double> pace = any_pace();
  const double less = (1.0 + *rc::gen::inRange(0, 1'000)) / 1e4;
  const double more = less + *rc::gen::inRange(0, 1'000) / 1e4;
  RC_ASSERT(threads_of_first(less, pace).first <= threads_of_first(more, pace).first * (1 + 1e-9));
  RC_ASSERT(threads_of_first(less, pace).second <= threads_of_first(more, pace).second);
}

}  // namespace
}  // namespace batchloom::control
