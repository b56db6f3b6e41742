// SPDX-License-Identifier: Apache-2.0
// A process of a simulated world: a Runtime, which can crash and be suspended.
#include "batchloom/base/sim_runtime.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

#include "batchloom/base/channel.h"
#include "batchloom/base/runtime_testing.h"

namespace batchloom {
namespace {

using std::chrono::nanoseconds;

RuntimeHost simulated(std::uint64_t seed) {
  return {"seed_" + std::to_string(seed), [seed](const std::function<void(Runtime&)>& body) {
            SimWorld world(seed);
            SimProcess& process = world.add_process("p");
            process.start("main", [&] { body(process); });
            const Status ended = world.run();
            EXPECT_TRUE(ended.is_ok()) << ended.to_string();
          }};
}

INSTANTIATE_TEST_SUITE_P(Sim, RuntimeTest,
                         testing::Values(simulated(1), simulated(2), simulated(3), simulated(4),
                                         simulated(5)),
                         host_name);

TEST(SimProcess, ACrashCancelsWaitsBegunAndNew) {
  SimWorld world(1);
  SimProcess& victim = world.add_process("victim");
  SimProcess& other = world.add_process("other");
  std::vector<Status> ended;
  victim.start("main", [&] {
    const auto event = victim.make_event();
    const auto task = victim.spawn("sleeper", [&](const std::stop_token& stop) {
      ended.push_back(victim.sleep_until({.deadline = kNever, .stop = stop}));
    });
    ended.push_back(event->wait({}));
    task->join();
    event->set();
    ended.push_back(event->wait({}));
    ended.push_back(victim.sleep_until({.deadline = victim.now()}));
    ended.push_back(victim.check({}));
    EXPECT_TRUE(victim.crashed());
  });
  world.post_later(100, [&] { victim.crash(); });
  other.start("main", [&] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(yield(other).is_ok());
  });
  ASSERT_TRUE(world.run().is_ok());
  ASSERT_EQ(ended.size(), 5U);
  for (const Status& status : ended) EXPECT_TRUE(status.is(ErrorKind::kCancelled));
  EXPECT_EQ(victim.live_threads(), 0U);
}

TEST(SimProcess, ACrashIsHeardAlsoByWhoWasWokenBeforeIt) {
  SimWorld world(1);
  SimProcess& victim = world.add_process("victim");
  const auto event = victim.make_event();
  Status ended;
  victim.start("main", [&] { ended = event->wait({}); });
  world.post_later(100, [&] {
    event->set();
    victim.crash();
  });
  ASSERT_TRUE(world.run().is_ok());
  EXPECT_TRUE(ended.is(ErrorKind::kCancelled));
}

TEST(SimProcessDeathTest, ALoopThatIgnoresACrashIsADefect) {
  const auto loop = [] {
    SimWorld world(1);
    SimProcess& process = world.add_process("stubborn");
    process.start("main", [&process] {
      process.crash();
      for (;;) static_cast<void>(process.check({}));
    });
    static_cast<void>(world.run());
  };
  EXPECT_DEATH(loop(), "process stubborn goes on after its crash");
}

TEST(SimProcess, PostedActionsSurviveACrash) {
  SimWorld world(1);
  SimProcess& victim = world.add_process("victim");
  int happened = 0;
  victim.start("main", [&] {
    world.post([&] { ++happened; });
    world.post_later(10, [&] { ++happened; });
    victim.crash();
  });
  ASSERT_TRUE(world.run().is_ok());
  EXPECT_EQ(happened, 2);
}

TEST(SimProcess, AJoinWaitsAlsoThroughACrash) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimWorld world(seed);
    SimProcess& victim = world.add_process("victim");
    victim.start("main", [&] {
      bool ended = false;
      const auto task = victim.spawn("sleeper", [&](const std::stop_token&) {
        EXPECT_TRUE(victim.sleep_until({}).is(ErrorKind::kCancelled));
        ended = true;
      });
      task->join();
      EXPECT_TRUE(ended);
    });
    world.post_later(100, [&] { victim.crash(); });
    ASSERT_TRUE(world.run().is_ok());
  }
}

/// Suspends a process that is about to take a hundred turns, for a while.
void suspend_amid_turns(std::uint64_t seed) {
  SimWorld world(seed);
  SimProcess& sleeper = world.add_process("sleeper");
  SimProcess& other = world.add_process("other");
  int turns = 0;
  sleeper.start("main", [&] {
    for (; turns < 100; ++turns) EXPECT_TRUE(yield(sleeper).is_ok());
  });
  other.start("main", [&] {
    while (turns < 5) EXPECT_TRUE(yield(other).is_ok());
    sleeper.suspend();
    sleeper.suspend();
    sleeper.start("late", [&] { ++turns; });
    const int before = turns;
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(yield(other).is_ok());
    EXPECT_EQ(turns, before);
    EXPECT_TRUE(sleeper.suspended());
    EXPECT_EQ(sleeper.live_threads(), 2U);
    sleeper.resume();
    sleeper.resume();
  });
  ASSERT_TRUE(world.run().is_ok());
  EXPECT_EQ(turns, 100);
}

TEST(SimProcess, IsNotPickedWhileItIsSuspended) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) suspend_amid_turns(seed);
}

TEST(SimProcess, AStopFromAnActionWakesWaiters) {
  SimWorld world(1);
  SimProcess& process = world.add_process("p");
  std::stop_source source;
  std::vector<Status> ended;
  const auto event = process.make_event();
  process.start("waiter", [&] { ended.push_back(event->wait({.stop = source.get_token()})); });
  process.start("sleeper",
                [&] { ended.push_back(process.sleep_until({.stop = source.get_token()})); });
  world.post_later(100, [&] { source.request_stop(); });
  ASSERT_TRUE(world.run().is_ok());
  ASSERT_EQ(ended.size(), 2U);
  for (const Status& status : ended) EXPECT_TRUE(status.is(ErrorKind::kCancelled));
}

TEST(SimProcess, AStopIsHeardWheneverItComes) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SimWorld world(seed);
    SimProcess& process = world.add_process("p");
    process.start("main", [&] {
      const auto event = process.make_event();
      Status ended;
      const auto task = process.spawn("waiter", [&](const std::stop_token& stop) {
        ended = event->wait({.deadline = kNever, .stop = stop});
      });
      EXPECT_TRUE(seed % 2 == 0 || yield(process).is_ok());
      task->request_stop();
      task->join();
      EXPECT_TRUE(ended.is(ErrorKind::kCancelled));
    });
    ASSERT_TRUE(world.run().is_ok()) << "seed " << seed << ": the stop was lost";
  }
}

TEST(SimWorld, TheDestructorEndsBlockedSuspendedAndUnstartedThreads) {
  int ended = 0;
  const auto wait_for_ever = [&ended](Runtime& runtime) {
    EXPECT_TRUE(runtime.sleep_until({}).is(ErrorKind::kCancelled));
    ++ended;
  };
  {
    SimWorld world(1);
    SimProcess& process = world.add_process("p");
    SimProcess& stopped = world.add_process("stopped");
    process.start("blocked", [&] { wait_for_ever(process); });
    process.start("joins", [&] {
      process.spawn("inner", [&](const std::stop_token&) { wait_for_ever(process); })->join();
    });
    stopped.start("suspended", [&] { wait_for_ever(stopped); });
    stopped.suspend();
    EXPECT_TRUE(world.run().is(ErrorKind::kInternal));
    process.start("unstarted", [&] { wait_for_ever(process); });
  }
  EXPECT_EQ(ended, 4);
}

TEST(SimProcess, AChannelDeliversEverythingOnce) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimWorld world(seed);
    SimProcess& process = world.add_process("p");
    Channel<int> channel(process, 3);
    std::multiset<int> received;
    process.start("main", [&] {
      const auto send = [&](const std::stop_token&) {
        for (int i = 0; i < 20; ++i)
          EXPECT_TRUE(channel.send(i, static_cast<std::uint64_t>(1 + i % 2), {}).is_ok());
      };
      const auto receive = [&](const std::stop_token&) {
        while (const auto item = channel.receive({}).value()) received.insert(*item);
      };
      const auto one = process.spawn("receiver", receive);
      const auto two = process.spawn("receiver", receive);
      process.spawn("sender", send)->join();
      process.spawn("sender", send)->join();
      channel.close();
    });
    ASSERT_TRUE(world.run().is_ok());
    ASSERT_EQ(received.size(), 40U) << "seed " << seed;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(received.count(i), 2U);
  }
}

}  // namespace
}  // namespace batchloom
