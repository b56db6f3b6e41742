// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/runtime_testing.h"

#include <chrono>
#include <memory>
#include <stop_token>
#include <vector>

namespace batchloom {
namespace {

using std::chrono::milliseconds;

CallOptions until(Time deadline) {
  return {.deadline = deadline};
}

/// A stop without a pause usually comes before the call that it ends, one after a pause during it.
constexpr Duration kPausesBeforeAStop[] = {Duration(0), milliseconds(3)};

std::stop_token triggered() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

}  // namespace

std::string host_name(const testing::TestParamInfo<RuntimeHost>& host) {
  return host.param.name;
}

TEST_P(RuntimeTest, TheClockNeverGoesBack) {
  run([](Runtime& runtime) {
    Time last = runtime.now();
    for (int i = 0; i < 1000; ++i) {
      const Time now = runtime.now();
      ASSERT_LE(last, now);
      last = now;
    }
  });
}

TEST_P(RuntimeTest, ASleepEndsAtItsDeadline) {
  run([](Runtime& runtime) {
    const Time deadline = runtime.now() + milliseconds(2);
    EXPECT_TRUE(runtime.sleep_until(until(deadline)).is_ok());
    EXPECT_GE(runtime.now(), deadline);
  });
}

TEST_P(RuntimeTest, ASleepUntilThePastIsOk) {
  run([](Runtime& runtime) {
    EXPECT_TRUE(runtime.sleep_until(until(runtime.now())).is_ok());
    EXPECT_TRUE(runtime.sleep_until(until(Time::min())).is_ok());
  });
}

TEST_P(RuntimeTest, AStopCancelsASleep) {
  run([](Runtime& runtime) {
    for (const Duration pause : kPausesBeforeAStop) {
      Status ended;
      const auto task = runtime.spawn("sleeper", [&](std::stop_token stop) {
        ended = runtime.sleep_until({.deadline = kNever, .stop = stop});
      });
      ASSERT_TRUE(runtime.sleep_until(until(runtime.now() + pause)).is_ok());
      task->request_stop();
      task->join();
      EXPECT_TRUE(ended.is(ErrorKind::kCancelled)) << ended.to_string();
    }
  });
}

TEST_P(RuntimeTest, AStopBeforeASleepCancelsIt) {
  run([](Runtime& runtime) {
    EXPECT_TRUE(runtime.sleep_until({.stop = triggered()}).is(ErrorKind::kCancelled));
    EXPECT_TRUE(runtime.sleep_until({.deadline = Time::min(), .stop = triggered()})
                    .is(ErrorKind::kCancelled));
  });
}

TEST_P(RuntimeTest, AnEventSetBeforeTheWaitEndsIt) {
  run([](Runtime& runtime) {
    const auto event = runtime.make_event();
    event->set();
    EXPECT_TRUE(event->wait({}).is_ok());
    EXPECT_TRUE(event->wait({}).is_ok()) << "an event stays set";
  });
}

TEST_P(RuntimeTest, AnEventSetDuringTheWaitEndsItForAllWaiters) {
  run([](Runtime& runtime) {
    constexpr int kWaiters = 3;
    const auto event = runtime.make_event();
    std::vector<std::unique_ptr<Event>> started;
    std::vector<Status> ended(kWaiters, Status::internal("still waiting"));
    std::vector<std::unique_ptr<Task>> tasks;
    for (int i = 0; i < kWaiters; ++i) {
      const auto place = static_cast<std::size_t>(i);
      started.push_back(runtime.make_event());
      Event& here = *started.back();
      tasks.push_back(runtime.spawn("waiter", [&, place](std::stop_token) {
        here.set();
        ended[place] = event->wait({});
      }));
    }
    for (const auto& here : started) ASSERT_TRUE(here->wait({}).is_ok());
    event->set();
    for (const auto& task : tasks) task->join();
    for (const Status& status : ended) EXPECT_TRUE(status.is_ok()) << status.to_string();
  });
}

TEST_P(RuntimeTest, AResetEventIsWaitedForAgain) {
  run([](Runtime& runtime) {
    const auto event = runtime.make_event();
    event->set();
    event->reset();
    const Time deadline = runtime.now() + milliseconds(1);
    EXPECT_TRUE(event->wait(until(deadline)).is(ErrorKind::kUnavailable));
  });
}

TEST_P(RuntimeTest, ADeadlineEndsAWaitAsUnavailable) {
  run([](Runtime& runtime) {
    const auto event = runtime.make_event();
    const Time deadline = runtime.now() + milliseconds(2);
    EXPECT_TRUE(event->wait(until(deadline)).is(ErrorKind::kUnavailable));
    EXPECT_GE(runtime.now(), deadline);
  });
}

TEST_P(RuntimeTest, AStopEndsAWaitAsCancelled) {
  run([](Runtime& runtime) {
    const auto event = runtime.make_event();
    for (const Duration pause : kPausesBeforeAStop) {
      for (const Time deadline : {kNever, runtime.now() + std::chrono::hours(1)}) {
        Status ended;
        const auto task = runtime.spawn("waiter", [&](std::stop_token stop) {
          ended = event->wait({.deadline = deadline, .stop = stop});
        });
        ASSERT_TRUE(runtime.sleep_until(until(runtime.now() + pause)).is_ok());
        task->request_stop();
        task->join();
        // Simulated time may jump over the hour before the stop.
        const bool late = ended.is(ErrorKind::kUnavailable) && runtime.now() >= deadline;
        EXPECT_TRUE(ended.is(ErrorKind::kCancelled) || late) << ended.to_string();
      }
    }
  });
}

TEST_P(RuntimeTest, AWaitThatMayNotStartLooksAtNoEvent) {
  run([](Runtime& runtime) {
    const auto event = runtime.make_event();
    event->set();
    EXPECT_TRUE(event->wait(until(runtime.now())).is(ErrorKind::kUnavailable));
    EXPECT_TRUE(event->wait({.stop = triggered()}).is(ErrorKind::kCancelled));
  });
}

TEST_P(RuntimeTest, TwoThreadsTakeTurns) {
  run([](Runtime& runtime) {
    const auto ping = runtime.make_event();
    const auto pong = runtime.make_event();
    std::vector<int> order;
    const auto task = runtime.spawn("pong", [&](std::stop_token) {
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(ping->wait({}).is_ok());
        ping->reset();
        order.push_back(2 * i + 1);
        pong->set();
      }
    });
    for (int i = 0; i < 50; ++i) {
      order.push_back(2 * i);
      ping->set();
      ASSERT_TRUE(pong->wait({}).is_ok());
      pong->reset();
    }
    task->join();
    ASSERT_EQ(order.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(RuntimeTest, JoinWaitsForTheBodyAndMayBeRepeated) {
  run([](Runtime& runtime) {
    bool done = false;
    const auto task = runtime.spawn("a name that is longer than Linux allows", [&](auto) {
      const Time deadline = runtime.now() + milliseconds(1);
      done = runtime.sleep_until(until(deadline)).is_ok();
    });
    task->join();
    EXPECT_TRUE(done);
    task->join();
  });
}

TEST_P(RuntimeTest, ATasksDestructorStopsAndJoins) {
  run([](Runtime& runtime) {
    Status ended;
    runtime
        .spawn("sleeper",
               [&](std::stop_token stop) { ended = runtime.sleep_until({.stop = stop}); })
        .reset();
    EXPECT_TRUE(ended.is(ErrorKind::kCancelled)) << ended.to_string();
  });
}

TEST_P(RuntimeTest, AThreadMaySpawnAnother) {
  run([](Runtime& runtime) {
    int depth = 0;
    runtime
        .spawn("outer",
               [&](std::stop_token) {
                 depth = 1;
                 runtime.spawn("inner", [&](std::stop_token) { depth = 2; })->join();
               })
        ->join();
    EXPECT_EQ(depth, 2);
  });
}

TEST_P(RuntimeTest, CheckTellsWhetherACallMayStart) {
  run([](Runtime& runtime) {
    EXPECT_TRUE(runtime.check({}).is_ok());
    EXPECT_TRUE(runtime.check(until(runtime.now() + std::chrono::hours(1))).is_ok());
    EXPECT_TRUE(runtime.check(until(runtime.now())).is(ErrorKind::kUnavailable));
    EXPECT_TRUE(runtime.check({.stop = triggered()}).is(ErrorKind::kCancelled));
    EXPECT_TRUE(
        runtime.check({.deadline = Time::min(), .stop = triggered()}).is(ErrorKind::kCancelled));
  });
}

TEST_P(RuntimeTest, RandomNumbersDiffer) {
  run([](Runtime& runtime) { EXPECT_NE(runtime.random(), runtime.random()); });
}

}  // namespace batchloom
