// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "batchloom/base/random.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/base/sim_runtime.h"

namespace batchloom {
namespace {

using std::chrono::milliseconds;

/// Runs `body` as a thread of a simulated process; time passes only while everybody waits.
void simulate(std::uint64_t seed, const std::function<void(Runtime&)>& body) {
  SimWorld world(seed);
  SimProcess& process = world.add_process("p");
  process.start("main", [&] { body(process); });
  const Status ended = world.run();
  ASSERT_TRUE(ended.is_ok()) << "seed " << seed << ": " << ended.to_string();
}

CallOptions soon(Runtime& runtime) {
  return {.deadline = runtime.now() + milliseconds(5)};
}

/// Gives every other thread so many chances to run that each of them waits for something. One long
/// sleep would not do: simulated time may jump over it first.
void let_others_wait(Runtime& runtime) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(runtime.sleep_until(soon(runtime)).is_ok());
}

/// The next item; -1 once closed and drained, -2 on an error.
int next(Channel<int>& channel, const CallOptions& call = {}) {
  const Result<std::optional<int>> item = channel.receive(call);
  if (!item.is_ok()) return -2;
  return item->value_or(-1);
}

TEST(Channel, FirstInFirstOut) {
  simulate(1, [](Runtime& runtime) {
    Channel<int> channel(runtime, 100);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(channel.send(i, 20, {}).is_ok());
    EXPECT_EQ(channel.queued_bytes(), 100u);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(next(channel), i);
    EXPECT_EQ(channel.queued_bytes(), 0u);
  });
}

TEST(Channel, WhatDoesNotFitWaits) {
  simulate(2, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    ASSERT_TRUE(channel.send(1, 6, {}).is_ok());
    EXPECT_TRUE(channel.send(2, 5, soon(runtime)).is(ErrorKind::kUnavailable));
    ASSERT_TRUE(channel.send(3, 4, soon(runtime)).is_ok());
    EXPECT_EQ(next(channel), 1);
    EXPECT_EQ(next(channel), 3) << "an item that was refused is gone";
    EXPECT_EQ(next(channel, soon(runtime)), -2);
  });
}

TEST(Channel, AnItemLargerThanTheBoundGoesThroughAlone) {
  simulate(3, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    ASSERT_TRUE(channel.send(1, 1000, {}).is_ok());
    EXPECT_TRUE(channel.send(2, 0, soon(runtime)).is(ErrorKind::kUnavailable));
    EXPECT_EQ(next(channel), 1);
    ASSERT_TRUE(channel.send(3, 1, {}).is_ok());
    EXPECT_TRUE(channel.send(4, 1000, soon(runtime)).is(ErrorKind::kUnavailable));
  });
}

TEST(Channel, ALargeItemIsNotOvertaken) {
  simulate(4, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    ASSERT_TRUE(channel.send(1, 4, {}).is_ok());
    const auto large = runtime.spawn(
        "large", [&](std::stop_token) { EXPECT_TRUE(channel.send(2, 10, {}).is_ok()); });
    let_others_wait(runtime);
    const auto small = runtime.spawn(
        "small", [&](std::stop_token) { EXPECT_TRUE(channel.send(3, 1, {}).is_ok()); });
    let_others_wait(runtime);
    for (const int expected : {1, 2, 3}) EXPECT_EQ(next(channel), expected);
  });
}

TEST(Channel, WhoGivesUpLetsThoseBehindIn) {
  simulate(5, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    ASSERT_TRUE(channel.send(1, 4, {}).is_ok());
    auto large = runtime.spawn("large", [&](std::stop_token stop) {
      EXPECT_TRUE(channel.send(2, 10, {.stop = stop}).is(ErrorKind::kCancelled));
    });
    let_others_wait(runtime);
    const auto small = runtime.spawn(
        "small", [&](std::stop_token) { EXPECT_TRUE(channel.send(3, 1, {}).is_ok()); });
    let_others_wait(runtime);
    EXPECT_EQ(channel.queued_bytes(), 4u);
    large.reset();
    small->join();
    EXPECT_EQ(channel.queued_bytes(), 5u);
  });
}

TEST(Channel, CloseDrainsAndThenSaysSo) {
  simulate(6, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    ASSERT_TRUE(channel.send(1, 10, {}).is_ok());
    const auto waiting = runtime.spawn("sender", [&](std::stop_token) {
      EXPECT_TRUE(channel.send(2, 10, {}).is(ErrorKind::kCancelled));
    });
    let_others_wait(runtime);
    channel.close();
    channel.close();
    EXPECT_TRUE(channel.send(3, 1, {}).is(ErrorKind::kCancelled));
    for (const int expected : {1, -1, -1}) EXPECT_EQ(next(channel), expected);
  });
}

TEST(Channel, CloseEndsWaitingReceivers) {
  simulate(7, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    const auto waiting =
        runtime.spawn("receiver", [&](std::stop_token) { EXPECT_EQ(next(channel), -1); });
    let_others_wait(runtime);
    channel.close();
  });
}

TEST(Channel, ACallThatMayNotStartTouchesNothing) {
  simulate(8, [](Runtime& runtime) {
    Channel<int> channel(runtime, 10);
    std::stop_source source;
    source.request_stop();
    const CallOptions stopped = {.stop = source.get_token()};
    const CallOptions late = {.deadline = runtime.now()};
    EXPECT_TRUE(channel.send(1, 1, stopped).is(ErrorKind::kCancelled));
    EXPECT_TRUE(channel.send(2, 1, late).is(ErrorKind::kUnavailable));
    ASSERT_TRUE(channel.send(3, 1, {}).is_ok());
    EXPECT_TRUE(channel.receive(stopped).is(ErrorKind::kCancelled));
    EXPECT_TRUE(channel.receive(late).is(ErrorKind::kUnavailable));
    EXPECT_EQ(next(channel), 3);
  });
}

TEST(Channel, MovesWhatCannotBeCopied) {
  simulate(9, [](Runtime& runtime) {
    Channel<std::unique_ptr<int>> channel(runtime, 10);
    ASSERT_TRUE(channel.send(std::make_unique<int>(7), 1, {}).is_ok());
    Result<std::optional<std::unique_ptr<int>>> item = channel.receive({});
    ASSERT_TRUE(item.is_ok() && item->has_value());
    EXPECT_EQ(***item, 7);
  });
}

/// Senders and receivers of which some give up early. What send() accepted is received once, and
/// each receiver sees each sender's items in order.
class Crowd {
 public:
  Crowd(Runtime& runtime, std::uint64_t seed) : runtime_(runtime), seeds_(seed) {}

  void run() {
    std::vector<std::unique_ptr<Task>> senders;
    std::vector<std::unique_ptr<Task>> receivers;
    for (int r = 0; r < kReceivers; ++r) {
      receivers.push_back(runtime_.spawn("receiver", [this, seed = seeds_.next()](std::stop_token) {
        receive_all(Random(seed));
      }));
    }
    for (int s = 0; s < kSenders; ++s) {
      senders.push_back(runtime_.spawn("sender", [this, s, seed = seeds_.next()](std::stop_token) {
        send_all(s, Random(seed));
      }));
    }
    senders.clear();
    channel_.close();
    receivers.clear();
    const MutexLock lock(mutex_);
    EXPECT_EQ(received_, sent_);
    EXPECT_EQ(channel_.queued_bytes(), 0u);
  }

 private:
  static constexpr int kSenders = 3;
  static constexpr int kReceivers = 2;
  static constexpr int kItems = 20;
  static constexpr std::uint64_t kBoundBytes = 10;
  static constexpr std::uint64_t kLargestBytes = 12;

  CallOptions call(Random& random) {
    if (random.chance(600)) return {};
    return {.deadline = runtime_.now() + milliseconds(1 + random.below(3))};
  }

  void send_all(int sender, Random random) {
    for (int item = sender * kItems; item < (sender + 1) * kItems; ++item) {
      const Status sent = channel_.send(item, random.below(kLargestBytes + 1), call(random));
      EXPECT_LE(channel_.queued_bytes(), kLargestBytes);
      const MutexLock lock(mutex_);
      if (sent.is_ok()) ++sent_[item];
    }
  }

  void receive_all(Random random) {
    std::map<int, int> last;
    for (;;) {
      const int item = next(channel_, call(random));
      if (item == -1) return;
      if (item == -2) continue;
      const auto [place, first] = last.emplace(item / kItems, item);
      EXPECT_TRUE(first || place->second < item);
      place->second = item;
      const MutexLock lock(mutex_);
      ++received_[item];
    }
  }

  Runtime& runtime_;
  Random seeds_;
  Channel<int> channel_{runtime_, kBoundBytes};
  Mutex mutex_;
  std::map<int, int> sent_ BL_GUARDED_BY(mutex_);
  std::map<int, int> received_ BL_GUARDED_BY(mutex_);
};

TEST(Channel, ACrowdLosesNothingInSimulation) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    simulate(seed, [seed](Runtime& runtime) { Crowd(runtime, seed).run(); });
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(Channel, ACrowdLosesNothingOnThreads) {
  const auto runtime = make_real_runtime();
  for (std::uint64_t seed = 0; seed < 20; ++seed) Crowd(*runtime, seed).run();
}

}  // namespace
}  // namespace batchloom
