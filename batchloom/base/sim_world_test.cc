// SPDX-License-Identifier: Apache-2.0
// The scheduler: what it picks, in which order, and when it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <vector>

#include "batchloom/base/runtime_testing.h"
#include "batchloom/base/sim_runtime.h"

namespace batchloom {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// What four threads of two processes do with one seed.
struct History {
  std::vector<std::size_t> order;  ///< Whose turn it was.
  std::uint64_t points = 0;
  std::uint64_t trace_hash = 0;
  Time end;
  friend bool operator==(const History&, const History&) = default;
};

History play(std::uint64_t seed, std::size_t threads = 4, int turns = 8) {
  History history;
  SimWorld world(seed);
  std::array<SimProcess*, 2> processes = {&world.add_process("a"), &world.add_process("b")};
  for (std::size_t i = 0; i < threads; ++i) {
    SimProcess& process = *processes[i % 2];
    process.start("t", [&history, &process, i, turns] {
      for (int turn = 0; turn < turns; ++turn) {
        const auto pause = nanoseconds(1 + process.random() % 1000);
        EXPECT_TRUE(process.sleep_until({.deadline = process.now() + pause}).is_ok());
        history.order.push_back(i);
      }
    });
  }
  EXPECT_TRUE(world.run().is_ok());
  history.points = world.points();
  history.trace_hash = world.trace_hash();
  history.end = world.now();
  return history;
}

TEST(SimWorld, OneSeedIsOneHistory) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(play(seed), play(seed));
}

TEST(SimWorld, TwoSeedsAreTwoHistories) {
  std::set<std::uint64_t> hashes;
  std::set<std::vector<std::size_t>> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const History history = play(seed);
    hashes.insert(history.trace_hash);
    orders.insert(history.order);
  }
  EXPECT_EQ(hashes.size(), 50U);
  EXPECT_EQ(orders.size(), 50U);
}

TEST(SimWorld, EveryOrderHappens) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<int> order;
    SimWorld world(seed);
    SimProcess& process = world.add_process("p");
    process.start("one", [&] { order.push_back(1); });
    process.start("two", [&] { order.push_back(2); });
    world.post([&] { order.push_back(3); });
    EXPECT_TRUE(world.run().is_ok());
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(SimWorld, ManyThreadsWaitManyTimes) {
  const History history = play(7, 16, 200);
  EXPECT_EQ(history.order.size(), 3200U);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(std::ranges::count(history.order, i), 200);
  EXPECT_GE(history.points, 3200U);
  EXPECT_EQ(history, play(7, 16, 200));
}

TEST(SimWorld, ObservationsAreInTheTraceHash) {
  SimWorld one(1);
  SimWorld other(1);
  EXPECT_EQ(one.trace_hash(), other.trace_hash());
  one.trace(1);
  other.trace(2);
  EXPECT_NE(one.trace_hash(), other.trace_hash());
}

TEST(SimWorld, ProcessesDrawNumbersOfTheirOwn) {
  SimWorld one(1);
  SimWorld other(1);
  const std::uint64_t first = one.add_process("a").random();
  EXPECT_EQ(first, other.add_process("a").random());
  EXPECT_NE(first, one.add_process("a").random());
}

TEST(SimWorld, ALaterActionWaitsForItsPick) {
  SimWorld world(1);
  SimProcess& busy = world.add_process("busy");
  std::uint64_t at = 0;
  busy.start("main", [&] {
    const std::uint64_t begin = world.points();
    world.post_later(50, [&, begin] { at = world.points() - begin; });
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(yield(busy).is_ok());
  });
  ASSERT_TRUE(world.run().is_ok());
  EXPECT_GE(at, 50U);
  EXPECT_LT(at, 500U);
}

TEST(SimWorld, LaterActionsComeInOrderWhenNothingElseCanHappen) {
  SimWorld world(1);
  std::vector<int> order;
  for (const int points : {3000, 1000, 2000})
    world.post_later(static_cast<std::uint64_t>(points),
                     [&order, points] { order.push_back(points); });
  ASSERT_TRUE(world.run().is_ok());
  EXPECT_THAT(order, ElementsAre(1000, 2000, 3000));
  EXPECT_LT(world.points(), 100U);
}

TEST(SimWorld, TimeStandsStillUntilNothingElseCanHappenAndThenJumps) {
  SimWorld world(1);
  SimProcess& process = world.add_process("p");
  process.start("main", [&] {
    const Time begin = process.now();
    EXPECT_TRUE(process.sleep_until({.deadline = begin + hours(1)}).is_ok());
    EXPECT_EQ(process.now(), begin + hours(1));
    const auto event = process.make_event();
    EXPECT_TRUE(event->wait({.deadline = begin + hours(3)}).is(ErrorKind::kUnavailable));
    EXPECT_EQ(process.now(), begin + hours(3));
    for (int i = 0; i < 100; ++i) process.spawn("t", [](const std::stop_token&) {})->join();
    EXPECT_EQ(process.now(), begin + hours(3));
  });
  ASSERT_TRUE(world.run().is_ok());
}

TEST(SimWorld, AWaitThatEndedEarlyLeavesNoTimerBehind) {
  SimWorld world(1);
  SimProcess& process = world.add_process("p");
  const auto event = process.make_event();
  process.start("main", [&] {
    world.post([&] { event->set(); });
    EXPECT_TRUE(event->wait({.deadline = kNever - hours(1)}).is_ok());
    EXPECT_TRUE(process.sleep_until({.deadline = Time() + milliseconds(1)}).is_ok());
  });
  ASSERT_TRUE(world.run().is_ok());
  EXPECT_EQ(world.now(), Time() + milliseconds(1));
}

TEST(SimWorld, ADeadlockNamesWhoWaits) {
  SimWorld world(1);
  SimProcess& process = world.add_process("p");
  SimProcess& stopped = world.add_process("stopped");
  const auto event = process.make_event();
  process.start("waiter", [&] { static_cast<void>(event->wait({})); });
  process.start("passer-by", [&] { EXPECT_TRUE(yield(process).is_ok()); });
  stopped.start("main", [&] { EXPECT_TRUE(yield(stopped).is_ok()); });
  stopped.suspend();
  const Status ended = world.run();
  ASSERT_TRUE(ended.is(ErrorKind::kInternal));
  EXPECT_THAT(std::string(ended.message()), HasSubstr("p/waiter, stopped/main"));
  EXPECT_THAT(std::string(ended.message()), Not(HasSubstr("passer-by")));
  // It may go on once something has happened.
  stopped.resume();
  event->set();
  EXPECT_TRUE(world.run().is_ok());
}

}  // namespace
}  // namespace batchloom
