// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/calibrate.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "batchloom/planning/builtin_costs.h"

namespace batchloom::planning {
namespace {

using Growth = CostCurve::Growth;
using Points = std::vector<CostPoint>;

constexpr std::uint64_t kUs = 1'000'000;  // In picoseconds.

Timing timing(TimedPart part, std::uint32_t tokens, std::uint64_t forward_ps,
              std::uint64_t backward_ps, std::uint32_t line = 0) {
  return {part, tokens, forward_ps, backward_ps, line};
}

Points points_of(const CostCurve& curve) {
  return {curve.points().begin(), curve.points().end()};
}

/// `rows` with one row of what else must be timed.
Calibration calibrated(std::vector<Timing> rows, TimedPart other = TimedPart::kLinear) {
  rows.push_back(timing(other, 1, kUs, kUs));
  return calibrate(rows, {}).value();
}

/// Calibrating a built-in model by its own points gives it back.
TEST(Calibrate, ABuiltInModelComesBack) {
  const CostModel h200 = builtin_cost_model("h200-llama7b").value();
  std::vector<Timing> timings;
  const auto add = [&](TimedPart part, const CostCurve& both, const CostCurve& forward) {
    for (std::size_t i = 0; i < both.points().size(); ++i) {
      const CostPoint& point = both.points()[i];
      const std::uint64_t forward_ps = forward.points()[i].time_ps;
      timings.push_back(timing(part, point.tokens, forward_ps, point.time_ps - forward_ps));
    }
  };
  add(TimedPart::kLinear, h200.linear, h200.linear_forward);
  add(TimedPart::kAttention, h200.attention, h200.attention_forward);
  std::ranges::reverse(timings);
  CostModel rest = h200;
  rest.attention = rest.attention_forward = rest.linear = rest.linear_forward = CostCurve();
  const Calibration made = calibrate(timings, rest).value();
  EXPECT_EQ(made.model, h200);
  EXPECT_EQ(made.attention.points, 9u);
  EXPECT_EQ(made.attention.residual, (RowErrors{.rows = 9}));
  EXPECT_EQ(made.linear.points, 7u);
  EXPECT_EQ(made.linear.residual, (RowErrors{.rows = 7}));
  EXPECT_EQ(made.encoder, FitError{});
}

TEST(Calibrate, TheMedianOfRepetitionsCounts) {
  const auto part = TimedPart::kAttention;
  const Calibration odd =
      calibrated({timing(part, 8, 1 * kUs, 8 * kUs, 2), timing(part, 8, 3 * kUs, 9 * kUs, 3),
                  timing(part, 8, 2 * kUs, 98 * kUs, 4)});
  EXPECT_EQ(points_of(odd.model.attention), (Points{{8, 12 * kUs}})) << "9, 12 and 100";
  EXPECT_EQ(points_of(odd.model.attention_forward), (Points{{8, 2 * kUs}})) << "1, 3 and 2";
  const Calibration even =
      calibrated({timing(part, 8, 1 * kUs, 9 * kUs), timing(part, 8, 1 * kUs, 99 * kUs),
                  timing(part, 8, 1 * kUs, 19 * kUs), timing(part, 8, 1 * kUs, 13 * kUs)});
  EXPECT_EQ(points_of(even.model.attention), (Points{{8, 17 * kUs}})) << "10, 14, 20 and 100";
}

TEST(Calibrate, SaysHowFarTheRowsLieFromTheCurve) {
  const auto part = TimedPart::kAttention;
  const FitError error =
      calibrated({timing(part, 8, 5 * kUs, 5 * kUs, 2), timing(part, 8, 4 * kUs, 4 * kUs, 3),
                  timing(part, 8, 10 * kUs, 10 * kUs, 4), timing(part, 16, 20 * kUs, 20 * kUs, 5)})
          .attention;
  EXPECT_EQ(error.points, 2u);
  const RowErrors& residual = error.residual;
  EXPECT_EQ(residual.rows, 4u);
  EXPECT_EQ(residual.worst_ppm, 500'000u) << "10 instead of 20";
  EXPECT_EQ(residual.worst_line, 4u);
  EXPECT_EQ(residual.mean_ppm, (0 + 250'000 + 500'000 + 0) / 4u) << "10 instead of 8 is 25 % off";
}

TEST(Calibrate, TheFirstOfTheWorstIsNamed) {
  const auto part = TimedPart::kAttention;
  const Calibration same = calibrated({timing(part, 8, kUs, 0, 2), timing(part, 8, 3 * kUs, 0, 3),
                                       timing(part, 8, kUs, 0, 4), timing(part, 8, 3 * kUs, 0, 5)});
  EXPECT_EQ(same.attention.residual.worst_ppm, 1'000'000u) << "2 instead of 1";
  EXPECT_EQ(same.attention.residual.worst_line, 2u);
  EXPECT_EQ(calibrated({timing(part, 8, kUs, 0, 7)}).attention.residual.worst_line, 7u);
}

/// A curve goes through its points, so that only what it was not made of says how good it is.
TEST(Calibrate, EachNumberOfTokensIsPredictedByTheOthers) {
  const auto part = TimedPart::kLinear;
  // 1 us a token, but 20 % more at 2,000; two rows there.
  const FitError error =
      calibrated({timing(part, 1'000, 1'000 * kUs, 0, 2), timing(part, 2'000, 2'400 * kUs, 0, 3),
                  timing(part, 2'000, 2'400 * kUs, 0, 4), timing(part, 3'000, 3'000 * kUs, 0, 5),
                  timing(part, 4'000, 4'000 * kUs, 0, 6), timing(part, 8'000, 12'000 * kUs, 0, 7)},
                 TimedPart::kAttention)
          .linear;
  EXPECT_EQ(error.points, 5u);
  EXPECT_EQ(error.residual, (RowErrors{.rows = 6, .worst_line = 2})) << "however crooked it is";
  // Of the others: 1 us a token at 2,000; 1.1 at 3,000 (between 1.2 and 1); 1.1 at 4,000 (a fifth
  // of the way from 1 to 1.5).
  EXPECT_EQ(error.left_out.rows, 4u) << "both rows at 2,000 are left out together";
  EXPECT_EQ(error.left_out.worst_ppm, 166'666u) << "2.0 instead of 2.4 ms";
  EXPECT_EQ(error.left_out.worst_line, 3u);
  EXPECT_EQ(error.left_out.mean_ppm, (2 * 166'666 + 2 * 100'000) / 4u);
  EXPECT_EQ(error.left_out_first,
            (RowErrors{.rows = 1, .worst_ppm = 1'400'000, .mean_ppm = 1'400'000, .worst_line = 2}))
      << "below its first point a curve is flat: 2.4 instead of 1.0 ms";
  EXPECT_EQ(error.left_out_last,
            (RowErrors{.rows = 1, .worst_ppm = 333'333, .mean_ppm = 333'333, .worst_line = 7}))
      << "8 instead of 12 ms";
}

TEST(Calibrate, OfTwoNumbersOfTokensBothAreExtrapolated) {
  const auto part = TimedPart::kAttention;
  const FitError error =
      calibrated({timing(part, 8, kUs, 0, 2), timing(part, 16, 4 * kUs, 0, 3)}).attention;
  EXPECT_EQ(error.left_out, RowErrors{});
  EXPECT_EQ(error.left_out_first.worst_ppm, 3'000'000u) << "4 instead of 1 us";
  EXPECT_EQ(error.left_out_last.worst_ppm, 0u) << "squared growth";
  EXPECT_EQ(error.left_out_last.rows, 1u);
}

TEST(Calibrate, TimesThatFallArePooled) {
  const auto part = TimedPart::kAttention;
  const Calibration made = calibrated({timing(part, 1, 10 * kUs, 0), timing(part, 2, 30 * kUs, 0),
                                       timing(part, 3, 22 * kUs, 0), timing(part, 4, 20 * kUs, 0),
                                       timing(part, 5, 40 * kUs, 0), timing(part, 6, 39 * kUs, 0)});
  EXPECT_EQ(points_of(made.model.attention_forward), (Points{{1, 10 * kUs},
                                                             {2, 24 * kUs},
                                                             {3, 24 * kUs},
                                                             {4, 24 * kUs},
                                                             {5, 79 * kUs / 2},
                                                             {6, 79 * kUs / 2}}));
  EXPECT_EQ(made.attention.residual.worst_ppm, 200'000u) << "24 instead of 30 or of 20";
}

TEST(Calibrate, PartsGrowAsTheyDo) {
  const Calibration made = calibrate(std::vector{timing(TimedPart::kAttention, 8, kUs, kUs),
                                                 timing(TimedPart::kLinear, 8, kUs, kUs),
                                                 timing(TimedPart::kEncoder, 8, kUs, 2 * kUs)},
                                     {})
                               .value();
  EXPECT_EQ(made.model.attention.growth(), Growth::kQuadratic);
  EXPECT_EQ(made.model.attention_forward.growth(), Growth::kQuadratic);
  EXPECT_EQ(made.model.linear.growth(), Growth::kLinear);
  EXPECT_EQ(made.model.linear_forward.growth(), Growth::kLinear);
  EXPECT_EQ(made.model.encoder.time_ns(16), 12'000u) << "(1 + 2) us, squared growth";
  EXPECT_EQ(made.encoder, (FitError{.points = 1,
                                    .residual = {.rows = 1},
                                    .left_out = {},
                                    .left_out_first = {},
                                    .left_out_last = {}}))
      << "there are no others";
}

TEST(Calibrate, AnEncoderThatWasNotTimedStays) {
  CostModel rest;
  rest.name = "mine";
  rest.encoder = CostCurve::create({{1, kUs}}, Growth::kLinear).value();
  const auto rows = std::vector{timing(TimedPart::kAttention, 8, kUs, kUs),
                                timing(TimedPart::kLinear, 8, kUs, kUs)};
  const CostModel made = calibrate(rows, rest).value().model;
  EXPECT_EQ(made.encoder, rest.encoder);
  EXPECT_EQ(made.name, "mine");
}

TEST(Calibrate, WhatItRefusesAndSays) {
  const Timing attention = timing(TimedPart::kAttention, 8, kUs, kUs);
  const Timing linear = timing(TimedPart::kLinear, 8, kUs, kUs);
  const Timing apart =
      timing(TimedPart::kLinear, std::numeric_limits<std::uint32_t>::max(), kUs * kUs, kUs);
  const Timing apart_too = timing(TimedPart::kLinear, 1, kUs * kUs, kUs);
  const std::pair<std::vector<Timing>, std::string> cases[] = {
      {{}, "no row of kind attention; attention and linear must both be timed"},
      {{linear}, "no row of kind attention"},
      {{attention}, "no row of kind linear"},
      {{attention, apart, apart_too}, "linear: a cost curve goes from 1 tokens"},
  };
  for (const auto& [timings, message] : cases) {
    const Status status = calibrate(timings, {}).status();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.to_string();
  }
}

/// Whatever was measured, a planner can use: times do not fall from point to point, forward takes
/// no longer than both phases, and no row is forgotten.
RC_GTEST_PROP(Calibrate, AnyTimingsMakeCurves, ()) {
  const std::uint32_t count = *rc::gen::inRange(1u, 60u);
  std::vector<Timing> rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    rows.push_back(timing(TimedPart::kAttention, *rc::gen::inRange(1u, 12u),
                          *rc::gen::inRange<std::uint64_t>(1, 100 * kUs),
                          *rc::gen::inRange<std::uint64_t>(0, 100 * kUs), i + 2));
  }
  const Calibration made = calibrated(rows);
  const Points both = points_of(made.model.attention);
  const Points forward = points_of(made.model.attention_forward);
  RC_ASSERT(both.size() == forward.size());
  for (std::size_t i = 0; i < both.size(); ++i) {
    RC_ASSERT(forward[i].time_ps <= both[i].time_ps);
    if (i > 0) RC_ASSERT(both[i - 1].time_ps <= both[i].time_ps);
  }
  const FitError& error = made.attention;
  RC_ASSERT(error.residual.rows == count);
  RC_ASSERT(error.points == both.size());
  for (const RowErrors& errors :
       {error.residual, error.left_out, error.left_out_first, error.left_out_last}) {
    RC_ASSERT(errors.mean_ppm <= errors.worst_ppm);
  }
  RC_ASSERT(error.left_out.rows + error.left_out_first.rows + error.left_out_last.rows ==
            (both.size() > 1 ? count : 0));
}

}  // namespace
}  // namespace batchloom::planning
