// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numbers>
#include <string>

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kBillion = 1'000'000'000;

WeightPoint weight_point(std::uint64_t step, std::uint64_t weight, Ramp ramp = Ramp::kNone) {
  return {model::Step(step), Weight(weight), ramp};
}

std::uint64_t weight_at(const Schedule& schedule, std::uint64_t step) {
  return schedule.at(model::Step(step)).value;
}

std::string schedule_complaint(std::vector<WeightPoint> points) {
  const Result<Schedule> schedule = Schedule::create(std::move(points));
  return schedule.is(ErrorKind::kInvalid) ? std::string(schedule.status().message()) : "";
}

TEST(Schedule, ConstantHoldsForEver) {
  const Schedule schedule(Weight(7));
  EXPECT_EQ(weight_at(schedule, 0), 7U);
  EXPECT_EQ(weight_at(schedule, UINT64_MAX), 7U);
  EXPECT_EQ(schedule.constant_until(model::Step(0)), Schedule::kNeverChanges);
}

TEST(Schedule, StepsHoldUntilTheNextPoint) {
  const Schedule schedule =
      Schedule::create({weight_point(10, 3), weight_point(20, 5), weight_point(30, 0)}).value();
  EXPECT_EQ(weight_at(schedule, 0), 3U) << "before the first point";
  EXPECT_EQ(weight_at(schedule, 19), 3U);
  EXPECT_EQ(weight_at(schedule, 20), 5U);
  EXPECT_EQ(weight_at(schedule, 29), 5U);
  EXPECT_EQ(weight_at(schedule, 30), 0U);
  EXPECT_EQ(schedule.constant_until(model::Step(4)), model::Step(10));
  EXPECT_EQ(schedule.constant_until(model::Step(10)), model::Step(20));
  EXPECT_EQ(schedule.constant_until(model::Step(30)), Schedule::kNeverChanges);
}

TEST(Schedule, LinearGoesByTheSameAmountRoundedUp) {
  const Schedule up =
      Schedule::create({weight_point(0, 0), weight_point(4, 10, Ramp::kLinear)}).value();
  EXPECT_EQ(weight_at(up, 0), 0U);
  EXPECT_EQ(weight_at(up, 1), 3U);
  EXPECT_EQ(weight_at(up, 2), 5U);
  EXPECT_EQ(weight_at(up, 3), 8U);
  EXPECT_EQ(weight_at(up, 4), 10U);
  EXPECT_EQ(weight_at(up, 5), 10U);
  EXPECT_EQ(up.constant_until(model::Step(2)), model::Step(3));
  const Schedule down =
      Schedule::create({weight_point(0, kMaxWeight.value), weight_point(2, 0, Ramp::kLinear)})
          .value();
  EXPECT_EQ(weight_at(down, 1), kMaxWeight.value / 2);
}

TEST(Schedule, CosineIsOne) {
  constexpr std::uint64_t kSteps = 1'000;
  const Schedule schedule = Schedule::create({weight_point(0, kBillion),
                                              weight_point(kSteps, 3 * kBillion, Ramp::kCosine)})
                                .value();
  for (std::uint64_t i = 0; i <= kSteps; ++i) {
    const double angle = std::numbers::pi * static_cast<double>(i) / kSteps;
    const double exact = 2e9 - 1e9 * std::cos(angle);
    EXPECT_NEAR(static_cast<double>(weight_at(schedule, i)), exact, 1.001) << i;
  }
  EXPECT_EQ(weight_at(schedule, kSteps / 2), 2 * kBillion);
}

/// Fixed for ever: other hosts and builds give the same.
TEST(Schedule, CosineIsTheSameEverywhere) {
  const Schedule schedule =
      Schedule::create({weight_point(0, 0), weight_point(7, kMaxWeight.value, Ramp::kCosine),
                        weight_point(10, 17, Ramp::kCosine)})
          .value();
  std::vector<std::uint64_t> weights;
  for (std::uint64_t i = 1; i < 10; ++i) weights.push_back(weight_at(schedule, i));
  EXPECT_EQ(weights, (std::vector<std::uint64_t>{
                         4'951'556'604'880, 18'825'509'907'064, 38'873'953'302'185,
                         61'126'046'697'816, 81'174'490'092'937, 95'048'443'395'121,
                         100'000'000'000'000, 75'000'000'000'005, 25'000'000'000'013}));
}

TEST(Schedule, IsZeroOnlyWhereAPointSaysSo) {
  for (const Ramp ramp : {Ramp::kLinear, Ramp::kCosine}) {
    const std::uint64_t end = std::uint64_t{1} << 50;
    const Schedule schedule = Schedule::create({weight_point(0, 0), weight_point(end, 1, ramp),
                                                weight_point(2 * end, 0, ramp)})
                                  .value();
    EXPECT_EQ(weight_at(schedule, 0), 0U);
    EXPECT_EQ(weight_at(schedule, 1), 1U);
    EXPECT_EQ(weight_at(schedule, 2 * end - 1), 1U);
    EXPECT_EQ(weight_at(schedule, 2 * end), 0U);
  }
}

TEST(Schedule, ARampBetweenEqualWeightsIsConstant) {
  const Schedule schedule =
      Schedule::create(
          {weight_point(0, 5), weight_point(10, 5, Ramp::kCosine), weight_point(20, 6)})
          .value();
  EXPECT_EQ(schedule.constant_until(model::Step(0)), model::Step(10));
}

TEST(Schedule, RefusesWhatIsNone) {
  EXPECT_EQ(schedule_complaint({}), "a schedule of 0 points; it has 1 to 1024");
  EXPECT_NE(schedule_complaint(std::vector<WeightPoint>(1025)).find("1025 points"),
            std::string::npos);
  EXPECT_NE(schedule_complaint({weight_point(3, 1, Ramp::kLinear)})
                .find("ramps to its first point, at step 3"),
            std::string::npos);
  EXPECT_NE(schedule_complaint({weight_point(3, 1), weight_point(3, 2)})
                .find("at step 3 follows one at step 3"),
            std::string::npos);
  EXPECT_NE(schedule_complaint({weight_point(3, kMaxWeight.value + 1)})
                .find("at step 3; weights are at most"),
            std::string::npos);
}

RC_GTEST_PROP(Schedule, StaysBetweenItsPointsAndIsConstantAsLongAsItSays, ()) {
  std::vector<WeightPoint> points;
  std::uint64_t step = *rc::gen::inRange<std::uint64_t>(0, 5);
  const int count = *rc::gen::inRange(1, 6);
  for (int i = 0; i < count; ++i) {
    const Ramp ramp =
        i == 0 ? Ramp::kNone : *rc::gen::element(Ramp::kNone, Ramp::kLinear, Ramp::kCosine);
    points.push_back(weight_point(step, *rc::gen::inRange<std::uint64_t>(0, 4), ramp));
    step += *rc::gen::inRange<std::uint64_t>(1, 12);
  }
  const Schedule schedule = Schedule::create(points).value();
  model::Step until(0);
  for (model::Step at(0); at.value < step + 3; ++at) {
    if (at < until) RC_ASSERT(schedule.at(at) == schedule.at(at - 1));
    if (at >= until) until = schedule.constant_until(at);
    RC_ASSERT(until > at);
  }
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const auto [low, high] = std::minmax(points[i].weight, points[i + 1].weight);
    Weight before = points[i].weight;
    for (model::Step at = points[i].step; at < points[i + 1].step; ++at) {
      const Weight weight = schedule.at(at);
      RC_ASSERT(low <= weight && weight <= high);
      const bool rises = points[i].weight < points[i + 1].weight;
      RC_ASSERT((rises ? before <= weight : before >= weight));
      before = weight;
    }
  }
}

}  // namespace
}  // namespace batchloom::planning
