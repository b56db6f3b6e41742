// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/cost_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace batchloom::planning {
namespace {

using Growth = CostCurve::Growth;

CostCurve curve(std::vector<CostPoint> points, Growth growth = Growth::kLinear) {
  return CostCurve::create(std::move(points), growth).value();
}

/// Up to 7 points of ascending tokens and times that do not fall.
rc::Gen<std::vector<CostPoint>> any_points() {
  return rc::gen::map(
      rc::gen::nonEmpty(
          rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint64_t>>>(rc::gen::pair(
              rc::gen::inRange(1u, 100'000u), rc::gen::inRange<std::uint64_t>(0, 1'000'000'000)))),
      [](std::vector<std::pair<std::uint32_t, std::uint64_t>> steps) {
        steps.resize(std::min<std::size_t>(steps.size(), 7));
        std::vector<CostPoint> points;
        CostPoint point;
        for (const auto& [tokens, time_ps] : steps) {
          point.tokens += tokens;
          point.time_ps += time_ps;
          points.push_back(point);
        }
        return points;
      });
}

/// A number of tokens up to twice the last point's, often a point's own or beside it.
rc::Gen<std::uint64_t> any_tokens(const std::vector<CostPoint>& points) {
  return rc::gen::oneOf(
      rc::gen::inRange<std::uint64_t>(0, 2 * std::uint64_t{points.back().tokens} + 2),
      rc::gen::map(rc::gen::pair(rc::gen::elementOf(points), rc::gen::inRange(0, 3)),
                   [](const std::pair<CostPoint, int>& beside) {
                     return std::uint64_t{beside.first.tokens} +
                            static_cast<std::uint64_t>(beside.second) - 1;
                   }));
}

TEST(CostCurve, WhatItRefusesAndSays) {
  const std::pair<std::vector<CostPoint>, std::string> cases[] = {
      {{}, "without points"},
      {{{0, 5}}, "a point at 0 tokens"},
      {{{2, 5}, {2, 6}}, "from 2 tokens in 5 ps to 2 tokens in 6 ps; tokens must ascend"},
      {{{1, 5}, {3, 6}, {2, 7}}, "from 3 tokens in 6 ps to 2 tokens in 7 ps"},
      {{{1, 5}, {2, 4}}, "more of them take no less time"},
      {{{1, 1ULL << 40}, {1U << 23, 1ULL << 40}}, "too far to count between them in 64 bits"},
  };
  for (const auto& [points, message] : cases) {
    const Status status = CostCurve::create(points, Growth::kLinear).status();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.to_string();
  }
  const CostCurve farthest = curve({{1, 1ULL << 40}, {(1U << 23) - 1, 1ULL << 40}});
  EXPECT_EQ(farthest.time_ns(1U << 22), (1ULL << 40) / 1000) << "2^62 is what n x r(n) gives";
}

TEST(CostCurve, TheDefaultTakesNoTime) {
  EXPECT_EQ(*CostCurve().table_ns(2), (std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_EQ(CostCurve().time_ns(0), 0u);
  EXPECT_EQ(CostCurve().time_ns(1000), 0u);
}

TEST(CostCurve, BelowTheFirstPointTimeStays) {
  const CostCurve c = curve({{100, 7'999}, {200, 10'000}});
  EXPECT_EQ(c.time_ns(0), 0u);
  EXPECT_EQ(c.time_ns(1), 7u);
  EXPECT_EQ(c.time_ns(100), 7u);
}

TEST(CostCurve, BetweenPointsTheTimePerTokenIsInterpolated) {
  // 1,000 ps per token at 100, 4,000 at 300: 2,500 at 200.
  const CostCurve c = curve({{100, 100'000}, {300, 1'200'000}});
  EXPECT_EQ(c.time_ns(200), 500u) << "interpolating the time itself would say 650";
  // In whole picoseconds: (3,000 x 1) / 200 = 15 more at 101.
  EXPECT_EQ(c.time_ns(101), 101u * 1'015u / 1'000u);
}

TEST(CostCurve, AFallingTimePerTokenIsInterpolatedToo) {
  // 4,000 ps per token at 100, 3,000 at 300: 3,500 at 200.
  EXPECT_EQ(curve({{100, 400'000}, {300, 900'000}}).time_ns(200), 700u);
}

TEST(CostCurve, WhereTimeHardlyGrowsItStaysBetweenThePoints) {
  // 10,000 ps per token at 100, 5,000 at 200; 150 x 7,500 would exceed both times.
  const CostCurve c = curve({{100, 1'000'000}, {200, 1'000'000}});
  EXPECT_EQ(c.time_ns(150), 1'000u);
}

TEST(CostCurve, GrowsAboveTheLastPoint) {
  const std::vector<CostPoint> points = {{10, 1'000}, {20, 3'000'000}};
  EXPECT_EQ(curve(points, Growth::kLinear).time_ns(50), 7'500u);
  EXPECT_EQ(curve(points, Growth::kQuadratic).time_ns(50), 18'750u);
  EXPECT_EQ(curve({{20, 3'000'000}}, Growth::kQuadratic).time_ns(40), 12'000u) << "one point";
}

TEST(CostCurve, ATimeBeyond64BitsIsTheLongest) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kTokens = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(curve({{1, kMost}}, Growth::kQuadratic).time_ns(kTokens), kMost);
  EXPECT_EQ(curve({{1, 1'000}}, Growth::kQuadratic).time_ns(kTokens), kTokens * kTokens);
}

RC_GTEST_PROP(CostCurve, IsExactAtItsPoints, ()) {
  const auto points = *any_points();
  const CostCurve c = curve(points, *rc::gen::element(Growth::kLinear, Growth::kQuadratic));
  for (const CostPoint& point : points) RC_ASSERT(c.time_ns(point.tokens) == point.time_ps / 1000);
}

/// By 2 ps per token for the rounding, and 1 ns for the truncation.
RC_GTEST_PROP(CostCurve, HardlyEverFalls, ()) {
  const auto points = *any_points();
  const CostCurve c = curve(points, *rc::gen::element(Growth::kLinear, Growth::kQuadratic));
  const std::uint64_t some = *any_tokens(points);
  const std::uint64_t others = *any_tokens(points);
  const auto [fewer, more] = std::minmax(some, others);
  RC_ASSERT(c.time_ns(fewer) <= c.time_ns(more) + 2 * more / 1000 + 1);
}

RC_GTEST_PROP(CostCurve, StaysBetweenNeighbouringPoints, ()) {
  const auto points = *any_points();
  const CostCurve c = curve(points);
  const std::uint64_t tokens = *any_tokens(points);
  for (const CostPoint& point : points) {
    if (point.tokens <= tokens) RC_ASSERT(c.time_ns(tokens) >= point.time_ps / 1000);
    if (point.tokens >= tokens) RC_ASSERT(c.time_ns(tokens) <= point.time_ps / 1000);
  }
}

RC_GTEST_PROP(CostCurve, TheTableHoldsWhatIsToldOneByOne, ()) {
  const Growth growth = *rc::gen::element(Growth::kLinear, Growth::kQuadratic);
  const CostCurve drawn = curve(*any_points(), growth);
  const std::uint32_t last = drawn.points().back().tokens;
  const CostCurve copied = drawn;  // It shares the table.
  for (int i = 0; i < 3; ++i) {
    const auto most = *rc::gen::inRange<std::uint32_t>(0, last + 20);
    const auto times = (i % 2 == 0 ? drawn : copied).table_ns(most);
    RC_ASSERT(times->size() > most);
    for (std::uint32_t tokens = 0; tokens < times->size(); ++tokens) {
      if ((*times)[tokens] != drawn.time_ns(tokens)) RC_FAIL("not at " + std::to_string(tokens));
    }
  }
}

TEST(CostCurve, MakesItsTableOnce) {
  const CostCurve first = curve({{10, 1000}, {20, 2000}});
  const CostCurve copied = first;
  const auto table = first.table_ns(15);
  EXPECT_EQ(copied.table_ns(12), table);
  EXPECT_NE(copied.table_ns(16), table);
  EXPECT_EQ(first.table_ns(3), copied.table_ns(16));
}

TEST(CostCurve, PacksOfMoreTokensMayTakeLessByRounding) {
  // The rate falls by 1 ps every second token.
  const auto packs = curve({{1000, 1'000'000}, {1008, 1'003'968}}).pack_times(7, 1008);
  EXPECT_EQ(packs->ns[1001], 1008U);
  EXPECT_EQ(packs->ns[1002], 1007U);
  EXPECT_EQ(packs->least_from_ns[1001], 1007U);
  EXPECT_EQ(packs->least_from_ns[1002], 1007U);
}

RC_GTEST_PROP(CostCurve, PacksTakeACurvesTimesAndALaunch, ()) {
  const CostCurve drawn = curve(*any_points(), Growth::kLinear);
  for (int i = 0; i < 3; ++i) {
    const auto launch_ns = *rc::gen::element<std::uint64_t>(0, 1, 5000);
    const auto capacity =
        *rc::gen::inRange<std::uint32_t>(1, std::min(drawn.points().back().tokens + 20, 3000U));
    const auto packs = drawn.pack_times(launch_ns, capacity);
    RC_ASSERT(drawn.pack_times(launch_ns, capacity) == packs);
    RC_ASSERT(packs->ns.size() == capacity + std::size_t{1});
    std::uint64_t least = UINT64_MAX;
    std::uint32_t cheapest = capacity;
    const auto rate = [&](std::uint32_t tokens) {
      return static_cast<long double>(packs->ns[tokens]) / tokens;
    };
    for (std::uint32_t tokens = capacity; tokens > 0; --tokens) {
      if (packs->ns[tokens] != drawn.time_ns(tokens) + launch_ns) RC_FAIL("another time");
      least = std::min(least, packs->ns[tokens]);
      if (packs->least_from_ns[tokens] != least) RC_FAIL("not the least from there on");
      if (rate(tokens) <= rate(cheapest)) cheapest = tokens;
    }
    RC_ASSERT(packs->cheapest_tokens == cheapest);
  }
}

/// The definition once more, in floating point and without the rounding.

RC_GTEST_PROP(CostCurve, AgreesWithItsDefinition, ()) {
  const auto points = *any_points();
  RC_PRE(points.size() > 1);
  const CostCurve c = curve(points);
  const std::size_t i = *rc::gen::inRange<std::size_t>(1, points.size());
  const CostPoint& a = points[i - 1];
  const CostPoint& b = points[i];
  const auto n = *rc::gen::inRange<std::uint64_t>(a.tokens, std::uint64_t{b.tokens} + 1);
  const auto rate = [](const CostPoint& p) { return double(p.time_ps) / p.tokens; };
  const double part = double(n - a.tokens) / (b.tokens - a.tokens);
  const double time_ps = double(n) * (rate(a) + (rate(b) - rate(a)) * part);
  const double bounded = std::clamp(time_ps, double(a.time_ps), double(b.time_ps));
  const double off_ns = std::abs(double(c.time_ns(n)) - bounded / 1000);
  RC_ASSERT(off_ns <= 2 * double(n) / 1000 + 1);
}

}  // namespace
}  // namespace batchloom::planning
