// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_profile.h"

#include <gtest/gtest.h>

#include "batchloom/base/sim_runtime.h"

namespace batchloom::control {
namespace {

using std::chrono::milliseconds;

constexpr model::SourceId kDocs{0};
constexpr model::SourceId kCode{1};

/// An order of 16 samples that takes so long for each.
OrderCost order_at(double sample_s) {
  return {.samples = 16,
          .tokens = 16 * 100,
          .bytes = 16 * 300,
          .thread_s = 16 * sample_s,
          .cpu_s = 8 * sample_s};
}

TEST(SourceProfile, BeginsWithTheMedianOfTheFirstOrders) {
  SourceProfile profile(2);
  EXPECT_EQ(profile.costs()[0], SampleCost()) << "nothing is known";
  profile.add(kDocs, order_at(0.5));  // It opened the file.
  EXPECT_DOUBLE_EQ(profile.costs()[0].thread_s, 0.5);
  for (int i = 0; i < 3; ++i) profile.add(kDocs, order_at(0.01));
  const SampleCost cost = profile.costs()[0];
  EXPECT_DOUBLE_EQ(cost.thread_s, 0.01);
  EXPECT_DOUBLE_EQ(cost.cpu_s, 0.005);
  EXPECT_DOUBLE_EQ(cost.tokens, 100);
  EXPECT_DOUBLE_EQ(cost.bytes, 300);
  EXPECT_EQ(cost.samples, 64U);
  EXPECT_EQ(profile.costs()[1], SampleCost());
}

TEST(SourceProfile, ThenItIsAMovingAverage) {
  SourceProfile profile(2);
  for (int i = 0; i < 4; ++i) profile.add(kDocs, order_at(0.01));
  profile.add(kDocs, order_at(0.03));
  EXPECT_NEAR(profile.costs()[0].thread_s, 0.95 * 0.01 + 0.05 * 0.03, 1e-12);
  for (int i = 0; i < 200; ++i) profile.add(kDocs, order_at(0.03));
  EXPECT_NEAR(profile.costs()[0].thread_s, 0.03, 1e-5);
}

TEST(SourceProfile, MeasuresAllOrdersAtFirstAndSomeLater) {
  SourceProfile profile(2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(profile.wants(kDocs));
    profile.add(kDocs, order_at(0.01));
  }
  int wanted = 0;
  for (int i = 0; i < 80; ++i) wanted += profile.wants(kDocs) ? 1 : 0;
  EXPECT_EQ(wanted, 10);
  EXPECT_TRUE(profile.wants(kCode));
}

/// Orders of so many samples that are all measured; after them some are not.
int first_orders(std::uint64_t samples) {
  SourceProfile profile(1);
  int orders = 0;
  while (profile.wants(kDocs) && profile.wants(kDocs)) {
    profile.add(kDocs, {.samples = samples, .thread_s = 1});
    ++orders;
  }
  return orders;
}

TEST(SourceProfile, TheFirstOrdersAreFourAtLeastAndHave64Samples) {
  EXPECT_EQ(first_orders(100), 4);
  EXPECT_EQ(first_orders(16), 4);
  EXPECT_EQ(first_orders(4), 16);
}

/// Takes 30 ms for an order of which a step says nothing else, with a block of one sample.
class SlowFetcher final : public SampleFetcher {
 public:
  explicit SlowFetcher(Runtime& runtime) : runtime_(runtime) {}

  Result<Fetched> fetch(const FetchOrder& order, FetchPlace&, const CallOptions&) override {
    BL_RETURN_IF_ERROR(runtime_.sleep_until({.deadline = runtime_.now() + milliseconds(30)}));
    if (order.step == model::Step(1)) return Status::unavailable("not now");
    if (order.step == model::Step(2)) return Fetched{.block = nullptr, .bad = {BadSample()}};
    construction::SampleBlockBuilder builder(
        {.step = order.step, .source = order.source, .vocab = 10, .payload_bytes = 8});
    BL_RETURN_IF_ERROR(builder.add_whole(order.samples.front()));
    return Fetched{.block = builder.finish()};
  }

 private:
  Runtime& runtime_;
};

FetchOrder order_of_one(std::uint64_t step) {
  FetchOrder order{.step = model::Step(step), .source = kCode, .samples = {}};
  model::SampleMeta& sample = order.samples.emplace_back();
  sample.id.source = kCode;
  sample.tokens = 4;
  sample.valid_labels = 3;
  return order;
}

/// What is known after one order.
SampleCost profiled(std::uint64_t step, const ReadThreadTimes& times) {
  SampleCost cost;
  SimWorld world(1);
  SimProcess& process = world.add_process("p");
  process.start("main", [&] {
    SourceProfile profile(2);
    SlowFetcher slow(process);
    ProfiledFetcher fetcher(process, slow, profile, times);
    FetchPlace place;
    const auto fetched = fetcher.fetch(order_of_one(step), place, {});
    EXPECT_EQ(fetched.is_ok(), step != 1) << fetched.status().to_string();
    cost = profile.costs()[1];
  });
  EXPECT_TRUE(world.run().is_ok());
  return cost;
}

/// Each look is so much later than the one before.
ReadThreadTimes times_by(Duration cpu, Duration ready) {
  return [=, times = ThreadTimes()]() mutable {
    times.cpu += cpu;
    times.ready += ready;
    return times;
  };
}

TEST(ProfiledFetcher, TellsWorkFromWaitingAndLeavesOutTheWaitForACore) {
  const SampleCost cost = profiled(0, times_by(milliseconds(5), milliseconds(10)));
  EXPECT_EQ(cost.samples, 1U);
  EXPECT_NEAR(cost.thread_s, 0.020, 1e-9);
  EXPECT_NEAR(cost.cpu_s, 0.005, 1e-9);
  EXPECT_DOUBLE_EQ(cost.tokens, 4);
  EXPECT_GT(cost.bytes, 16);
}

TEST(ProfiledFetcher, NoMoreOfItIsWorkThanItTook) {
  const SampleCost cost = profiled(0, times_by(milliseconds(50), milliseconds(10)));
  EXPECT_NEAR(cost.thread_s, 0.020, 1e-9);
  EXPECT_DOUBLE_EQ(cost.cpu_s, cost.thread_s) << "clocks are not alike";
}

TEST(ProfiledFetcher, WithoutThreadTimesAllOfItCountsAsWork) {
  const SampleCost cost = profiled(0, {});
  EXPECT_NEAR(cost.thread_s, 0.030, 1e-9);
  EXPECT_DOUBLE_EQ(cost.cpu_s, cost.thread_s);
}

TEST(ProfiledFetcher, WhatFailsOrHasBadRecordsIsNotMeasured) {
  EXPECT_EQ(profiled(1, {}), SampleCost());
  EXPECT_EQ(profiled(2, {}), SampleCost());
}

}  // namespace
}  // namespace batchloom::control
