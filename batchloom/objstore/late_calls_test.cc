// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/late_calls.h"

#include <gtest/gtest.h>

#include "batchloom/base/sim_runtime.h"

namespace batchloom::objstore {
namespace {

constexpr Duration kSecond = std::chrono::seconds(1);

void simulate(const std::function<void(SimProcess&)>& body) {
  SimWorld world(1);
  SimProcess& process = world.add_process("client");
  process.start("main", [&] { body(process); });
  const Status ended = world.run();
  EXPECT_TRUE(ended.is_ok()) << ended.to_string();
}

TEST(LateCalls, RunAfterTheirDelayWithoutTheCaller) {
  simulate([](SimProcess& process) {
    LateCalls late(process);
    const Time begin = process.now();
    const auto ran = process.make_event();
    Duration waited{};
    EXPECT_TRUE(late.start(3 * kSecond, [&] {
      waited = process.now() - begin;
      ran->set();
    }));
    EXPECT_EQ(waited, Duration::zero());
    EXPECT_TRUE(ran->wait({}).is_ok());
    EXPECT_GE(waited, 3 * kSecond);
  });
}

TEST(LateCalls, TheDestructorRunsWhatStillWaits) {
  simulate([](SimProcess& process) {
    int ran = 0;
    {
      LateCalls late(process);
      EXPECT_TRUE(late.start(std::chrono::hours(1), [&] { ++ran; }));
    }
    EXPECT_EQ(ran, 1);
  });
}

TEST(LateCalls, AreBoundedAndMakeRoomAgain) {
  simulate([](SimProcess& process) {
    std::size_t ran = 0;
    {
      LateCalls late(process);
      for (std::size_t i = 0; i < LateCalls::kMaxWaiting; ++i) {
        EXPECT_TRUE(late.start(kSecond, [&] { ++ran; }));
      }
      EXPECT_FALSE(late.start(kSecond, [&] { ++ran; }));
      while (!late.start(kSecond, [&] { ++ran; })) {
        const Time later = process.now() + kSecond;
        EXPECT_TRUE(process.sleep_until({.deadline = later, .stop = {}}).is_ok());
      }
      EXPECT_GT(ran, 0U);
    }
    EXPECT_EQ(ran, LateCalls::kMaxWaiting + 1);
  });
}

}  // namespace
}  // namespace batchloom::objstore
