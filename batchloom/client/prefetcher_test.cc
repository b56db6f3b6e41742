// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/client/prefetcher_testing.h"

namespace batchloom::client {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;
using std::chrono::seconds;
using store::Answer;

/// Bytes of rank 0's runs of an object.
std::uint64_t run_bytes(ClientWorld& world, Step step) {
  StepFetcher fetcher(world.feed(), {});
  return must(fetcher.prepare(must(world.feed().refresh({}))->head, step, {})).size_bytes;
}

std::uint64_t largest_run_bytes(ClientWorld& world) {
  std::uint64_t most = 0;
  for (Step step; step < world.newest()->head.next_step; ++step) {
    most = std::max(most, run_bytes(world, step));
  }
  return most;
}

TEST(Prefetcher, HandsOutStepsInOrder) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(4);
    world.producer().append_small(2, 3);
    Reading reading(world);
    for (std::uint64_t number = 0; number < 10; ++number) {
      const StepPtr step = must(reading->next({}));
      EXPECT_EQ(step->step, Step(number));
      EXPECT_EQ(step->plan_digest, world.step(number).plan.digest);
    }
    EXPECT_EQ(world.data_gets(), 6U);
    EXPECT_EQ(reading->held_bytes(), 0U);
  });
}

TEST(Prefetcher, ReadsAheadWithoutBeingAsked) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(6);
    Reading reading(world);
    world.pass(seconds(10));
    EXPECT_EQ(world.data_gets(), 6U);
    EXPECT_GT(reading->held_bytes(), 0U);
    for (std::uint64_t number = 0; number < 6; ++number) reading.expect_step(number);
    EXPECT_EQ(world.counted("client_stalls"), 0U);
  });
}

TEST(Prefetcher, MakesArraysOfTheNextStepsAhead) {
  on_any_schedule([](ClientWorld& world) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {  // Of ids that an int32 holds.
      const TestStep step = make_step({.seed = seed, .width = store::TokenWidth::k16});
      world.producer().append(std::span(&step, 1));
    }
    Counters counters;
    BufferPool pool(kPlenty, counters);
    Reading reading(world, {.budget_bytes = kPlenty, .views_ahead = 2, .buffers = &pool}, Step(0),
                    {});
    world.pass(seconds(10));
    EXPECT_EQ(counters.snapshot()["client_buffers_made"], 2U) << "of six that are ready";
    for (std::uint64_t number = 0; number < 6; ++number) {
      const StepPtr step = must(reading->next({}));
      const std::optional<TrainerView> view = reading->take_view();
      ASSERT_TRUE(view.has_value());
      EXPECT_EQ(view->step, step);
      EXPECT_FALSE(reading->take_view().has_value()) << "once";
      world.pass(seconds(1));
    }
    EXPECT_LE(counters.snapshot()["client_buffers_made"], 3U) << "buffers go round";
    reading->seek(Step(3));
    EXPECT_EQ(must(reading->next({}))->step, Step(3));
    if (const std::optional<TrainerView> view = reading->take_view()) {
      EXPECT_EQ(view->step->step, Step(3)) << "not of a step before the seek";
    }
  });
}

TEST(Prefetcher, NeverHoldsMoreThanItsBudget) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(12);
    const std::uint64_t largest = largest_run_bytes(world);
    for (const std::uint64_t budget : {largest, 2 * largest, 3 * largest + 7}) {
      std::uint64_t most = 0;
      Reading reading(world, budget);
      for (std::uint64_t number = 0; number < 12; ++number) {
        world.pass(milliseconds(5));
        most = std::max(most, reading->held_bytes());
        reading.expect_step(number);
        most = std::max(most, reading->held_bytes());
      }
      EXPECT_LE(most, budget);
      EXPECT_GE(most, budget / 4) << "and makes use of it";
    }
  });
}

TEST(Prefetcher, WithoutABudgetReadsWhatIsWaitedFor) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(5);
    Reading reading(world, 0);
    for (std::uint64_t number = 0; number < 5; ++number) {
      world.pass(seconds(1));
      EXPECT_EQ(world.data_gets(), number);
      EXPECT_EQ(reading->held_bytes(), 0U);
      reading.expect_step(number);
    }
  });
}

TEST(Prefetcher, HoldsAPackUntilItsLastStepIsHandedOut) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(2, 3);
    const std::uint64_t pack = run_bytes(world, Step(0));
    Reading reading(world, pack);
    world.pass(seconds(1));
    EXPECT_EQ(reading->held_bytes(), pack);
    reading.expect_step(0);
    reading.expect_step(1);
    world.pass(seconds(1));
    EXPECT_EQ(reading->held_bytes(), pack) << "its buffer is one";
    EXPECT_EQ(world.data_gets(), 1U);
    for (std::uint64_t number = 2; number < 6; ++number) reading.expect_step(number);
    EXPECT_EQ(world.data_gets(), 2U);
  });
}

TEST(Prefetcher, PollsOnlyWhileThereIsRoom) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(3);
    Reading reading(world, run_bytes(world, Step(0)) + 1);
    world.pass(seconds(1));
    const std::uint64_t polls = world.counted("client_polls");
    world.pass(seconds(60));
    EXPECT_EQ(world.counted("client_polls"), polls) << "two steps are visible and find no room";
    for (std::uint64_t number = 0; number < 3; ++number) reading.expect_step(number);
    world.pass(seconds(60));
    EXPECT_GT(world.counted("client_polls"), polls + 5);
  });
}

TEST(Prefetcher, DoesNotPollForWhatWouldFindNoRoom) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    Reading reading(world, run_bytes(world, Step(0)));
    world.pass(seconds(1));
    const std::uint64_t polls = world.counted("client_polls");
    world.pass(seconds(60));
    EXPECT_EQ(world.counted("client_polls"), polls);
    reading.expect_step(0);
    world.pass(seconds(60));
    EXPECT_GT(world.counted("client_polls"), polls + 5);
  });
}

TEST(Prefetcher, WaitsForCommits) {
  on_any_schedule([](ClientWorld& world) {
    const auto producer = world.start("producer", [&](const std::stop_token&) {
      for (int i = 0; i < 4; ++i) {
        world.pass(milliseconds(700));
        world.producer().append_small(1);
      }
    });
    Reading reading(world);
    for (std::uint64_t number = 0; number < 4; ++number) reading.expect_step(number);
    producer->join();
  });
}

TEST(Prefetcher, AnAnswerThatIsLateComesWithTheNextCall) {
  on_any_schedule([](ClientWorld& world) {
    Reading reading(world);
    world.pass(seconds(1));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(is_error(reading->next(world.within(seconds(3))).status(),
                           ErrorKind::kUnavailable,
                           {"step 0 is not committed yet", "m/00000000000000000002"}));
    }
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(reading->next({.stop = stop.get_token()}).is(ErrorKind::kCancelled));
    world.producer().append_small(1);
    reading.expect_step(0);
  });
}

TEST(Prefetcher, AStopEndsAWait) {
  on_any_schedule([](ClientWorld& world) {
    Reading reading(world);
    const auto waiter = world.start("trainer", [&](const std::stop_token& stop) {
      EXPECT_TRUE(reading->next({.stop = stop}).is(ErrorKind::kCancelled));
    });
    world.pass(milliseconds(10));
    waiter->request_stop();
    waiter->join();
    world.producer().append_small(1);
    reading.expect_step(0);
  });
}

TEST(Prefetcher, OutagesAreWaitedOut) {
  const QuietLog quiet;
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(2);
    for (const char* prefix : {"m/", "d/", "gc/"}) {
      world.objects().next({.operation = Operation::kGet,
                            .prefix = prefix,
                            .answer = Answer::kUnavailable,
                            .times = 7});
    }
    Reading reading(world);
    reading.expect_step(0);
    reading.expect_step(1);
    EXPECT_TRUE(reading->next(world.within(seconds(60))).is(ErrorKind::kUnavailable));
    EXPECT_TRUE(world.objects().script_is_done());
  });
}

TEST(Prefetcher, AtTheDeadlineSaysWhatFails) {
  const QuietLog quiet;
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(1);
    world.objects().next({.operation = Operation::kGet,
                          .prefix = "d/",
                          .answer = Answer::kUnavailable,
                          .times = 1'000});
    Reading reading(world);
    world.pass(seconds(1));
    EXPECT_TRUE(is_error(reading->next(world.within(seconds(20))).status(), ErrorKind::kUnavailable,
                         {"step 0 was not read yet", "the last attempt: unavailable", "d/"}));
    world.objects().forget_script();
    reading.expect_step(0);
  });
}

TEST(Prefetcher, AnErrorComesAfterWhatWasReadBeforeItAndStays) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(5);
    world.damage(Step(2), model::HdpRank(0));
    Reading reading(world);
    world.pass(seconds(1));
    reading.expect_step(0);
    reading.expect_step(1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(is_error(reading->next({}).status(), ErrorKind::kCorruption, {"step 2"}));
    }
    const std::size_t gets = world.data_gets();
    world.pass(seconds(10));
    EXPECT_EQ(world.data_gets(), gets) << "nothing is read behind it";
    reading->seek(Step(2));
    EXPECT_TRUE(is_error(reading->next({}).status(), ErrorKind::kCorruption, {"step 2"}));
    reading->seek(Step(3));
    reading.expect_step(3);
    reading.expect_step(4);
    reading->seek(Step(0));
    reading.expect_step(0);
  });
}

TEST(Prefetcher, PassesOverSkippedSteps) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(3, 2);
    Reading reading(world, kPlenty, Step(0),
                    {.skipped = {Step(0), Step(3), Step(4), Step(5), Step(6)}});
    reading.expect_step(1);
    reading.expect_step(2);
    world.producer().append_small(1, 2);
    reading.expect_step(7);
  });
}

TEST(Prefetcher, SeeksAnywhereAtAnyTime) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(8);
    Reading reading(world, 2 * largest_run_bytes(world));
    for (const std::uint64_t to : {5U, 1U, 1U, 7U, 0U, 3U}) {
      reading->seek(Step(to));
      if (to % 2 == 1) world.pass(Duration(to * 7));
      EXPECT_LE(reading->held_bytes(), 2 * largest_run_bytes(world));
      for (std::uint64_t number = to; number < std::min<std::uint64_t>(8, to + 2); ++number) {
        reading.expect_step(number);
      }
    }
  });
}

TEST(Prefetcher, WhatASeekOvertookIsDropped) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(4);
    world.damage(Step(2), model::HdpRank(0));
    std::optional<Reading> reading;
    for (const std::uint64_t from : {0U, 2U}) {  // A step that comes, and one that does not.
      world.objects().next({.operation = Operation::kGet, .prefix = "d/", .after = [&] {
                              (*reading)->seek(Step(3));
                            }});
      reading.emplace(world, kPlenty, Step(from));
      world.pass(seconds(1));
      EXPECT_TRUE(world.objects().script_is_done());
      reading->expect_step(3);
      EXPECT_EQ((*reading)->held_bytes(), 0U);
    }
  });
}

TEST(Prefetcher, StopsInTheMiddleOfAnything) {
  on_any_schedule([](ClientWorld& world) {
    for (std::uint64_t nanoseconds = 0; nanoseconds < 24; nanoseconds += 3) {
      world.producer().append_small(1);
      Reading reading(world);
      world.pass(Duration(1 + nanoseconds));
      if (nanoseconds % 2 == 0) continue;
      reading->stop();
      EXPECT_TRUE(reading->next({}).is(ErrorKind::kCancelled));
      reading->seek(Step(0));
      reading->stop();
    }
  });
}

/// Whether this thread lets the others go far whenever it asks for the time.
thread_local bool yields_at_now = false;

class YieldingRuntime final : public Runtime {
 public:
  explicit YieldingRuntime(SimProcess& process) : process_(process) {}

  Time now() override {
    for (int left = 64; left > 0 && yields_at_now; --left) {
      static_cast<void>(process_.sleep_until({.deadline = process_.now() + milliseconds(1)}));
    }
    return process_.now();
  }
  Status sleep_until(const CallOptions& call) override { return process_.sleep_until(call); }
  std::unique_ptr<Task> spawn(std::string name,
                              std::function<void(std::stop_token)> body) override {
    return process_.spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return process_.make_event(); }
  std::uint64_t random() override { return process_.random(); }
  Status check(const CallOptions& call) override { return process_.check(call); }

 private:
  SimProcess& process_;
};

TEST(Prefetcher, AStepThatWasTakenIsNotAwaitedAnyMore) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimWorld sim(seed);
    SimProcess& process = sim.add_process("trainer");
    YieldingRuntime runtime(process);
    process.start("main", [&] {
      ClientWorld world(runtime);
      world.producer().append_small(3);
      Reading reading(world, 0);
      yields_at_now = true;
      reading.expect_step(0);
      EXPECT_EQ(reading->held_bytes(), 0U) << "nobody waits for the next one yet";
      EXPECT_EQ(world.data_gets(), 1U);
    });
    const Status ended = sim.run();
    ASSERT_TRUE(ended.is_ok()) << ended.to_string();
  }
}

TEST(Prefetcher, ACrashEndsItsThread) {
  on_any_schedule([](ClientWorld& world) {
    world.producer().append_small(4);
    Reading reading(world);
    world.pass(Duration(world.runtime().random() % 30));
    static_cast<SimProcess&>(world.runtime()).crash();
    EXPECT_TRUE(reading->next({}).is(ErrorKind::kCancelled));
  });
}

}  // namespace
}  // namespace batchloom::client
