// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/share_outlook.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/base/random.h"
#include "batchloom/planning/mixture_testing.h"

namespace batchloom::planning {
namespace {

constexpr std::int64_t kWhole = std::int64_t{1} << share_bits(StepUnit::kSamples);

std::vector<MixtureSource> sources_with(std::vector<Schedule> weights) {
  std::vector<MixtureSource> out;
  for (Schedule& weight : weights) out.push_back(endless(1, std::move(weight)));
  return out;
}

TEST(ShareOutlook, SharesAddUpToOne) {
  const auto sources = sources_with({weighs(1), weighs(1), weighs(1)});
  const std::vector<SourceState> rows(3);
  ShareOutlook outlook(StepUnit::kSamples, 10);
  outlook.move_to({sources, rows}, model::Step(0), true);
  const std::int64_t third = kWhole / 3;
  EXPECT_EQ(std::vector(outlook.shares().begin(), outlook.shares().end()),
            (std::vector{kWhole - 2 * third, third, third}));
}

TEST(ShareOutlook, SourcesThatTakeNoPartHaveNone) {
  auto sources = sources_with({weighs(3), weighs(4), weighs(0), weighs(3)});
  std::vector<SourceState> rows(4);
  rows[0].gone = true;
  rows[2].set_weight = Weight(2);
  sources[3].records = 0;
  ShareOutlook outlook(StepUnit::kSamples, 10);
  outlook.move_to({sources, rows}, model::Step(0), true);
  const std::int64_t third = kWhole / 3;
  EXPECT_EQ(std::vector(outlook.shares().begin(), outlook.shares().end()),
            (std::vector{std::int64_t{0}, kWhole - third, third, std::int64_t{0}}));
}

TEST(ShareOutlook, CreditEarnedBeforeCountsBackWithTheShareOfNow) {
  const auto sources = sources_with({weighs(1), weighs(3)});
  const std::vector<SourceState> rows(2);
  const WeightsInForce weights(sources, rows);
  ShareOutlook outlook(StepUnit::kSamples, 10);
  outlook.move_to(weights, model::Step(2), true);
  const auto place = [&](WideInt credit) {
    return static_cast<std::int64_t>(outlook.last_place_within(weights, 0, credit, 3));
  };
  EXPECT_EQ(place(0), 23);
  EXPECT_EQ(place(kWhole), 27);
  EXPECT_EQ(place(kWhole - 1), 26);
  EXPECT_EQ(place(-1), 22);
  EXPECT_EQ(place(-kWhole), 19);
}

TEST(ShareOutlook, WhatIsNeverEarnedIsDueNever) {
  const Schedule ends =
      Schedule::create({{model::Step(0), Weight(1)}, {model::Step(4), Weight(0)}}).value();
  const auto sources = sources_with({ends, weighs(1)});
  const std::vector<SourceState> rows(2);
  const WeightsInForce weights(sources, rows);
  ShareOutlook outlook(StepUnit::kSamples, 10);
  outlook.move_to(weights, model::Step(0), true);
  EXPECT_EQ(outlook.last_place_within(weights, 0, 20 * kWhole - 1, 0), 39);
  EXPECT_EQ(outlook.last_place_within(weights, 0, 20 * kWhole, 0), kNever);
}

/// Against a walk from place to place.
RC_GTEST_PROP(ShareOutlook, FindsPlacesThroughAllSchedules, (std::uint64_t seed)) {
  Random random(seed);
  const std::uint64_t per_step = 1 + random.below(5);
  std::vector<Schedule> schedules;
  const std::uint64_t count = 1 + random.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::vector<WeightPoint> points = {{model::Step(0), Weight(random.below(9))}};
    while (random.below(5) != 0) {
      points.push_back({points.back().step + 1 + random.below(9), Weight(random.below(9)),
                        static_cast<Ramp>(random.below(3))});
    }
    schedules.push_back(Schedule::create(points).value());
  }
  schedules.push_back(weighs(1));
  const auto sources = sources_with(schedules);
  const std::vector<SourceState> rows(sources.size());
  const WeightsInForce weights(sources, rows);
  ShareOutlook outlook(StepUnit::kSamples, per_step);
  ShareOutlook walker(StepUnit::kSamples, per_step);
  for (std::uint64_t step = 0; step < 30; step += 1 + random.below(4)) {
    outlook.move_to(weights, model::Step(step), step == 0);
    for (int i = 0; i < 4; ++i) {
      const std::size_t source = random.below(sources.size());
      const WideInt credit = static_cast<std::int64_t>(random.below(3 * kWhole));
      const std::uint64_t units = random.below(per_step);
      const WideInt place = outlook.last_place_within(weights, source, credit, units);
      WideInt earned = 0;
      WideInt at = WideInt{step} * per_step + units;
      for (; earned <= credit && at < WideInt{step + 200} * per_step; ++at) {
        walker.move_to(weights, model::Step(static_cast<std::uint64_t>(at / per_step)), true);
        earned += walker.shares()[source];
      }
      RC_ASSERT((earned <= credit ? place >= at : place == at - 1));
    }
  }
}

}  // namespace
}  // namespace batchloom::planning
