// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/builtin_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace batchloom::planning {
namespace {

CostModel known_model(std::string_view name) {
  return builtin_cost_model(name).value();
}

/// A row of costs/h200-costs.json.
struct MeasuredMs {
  double tokens;
  double ms;
};

/// n x (time per token, interpolated linearly between two rows), in nanoseconds.
double between(MeasuredMs a, MeasuredMs b, double n) {
  const double rate_a = a.ms / a.tokens;
  const double rate_b = b.ms / b.tokens;
  return n * (rate_a + (rate_b - rate_a) * (n - a.tokens) / (b.tokens - a.tokens)) * 1e6;
}

/// Within what whole picoseconds per token leave: 2 ps per token, 1 ns.
void expect_time(const CostCurve& curve, double tokens, double ns) {
  const auto n = static_cast<std::uint64_t>(tokens);
  EXPECT_NEAR(static_cast<double>(curve.time_ns(n)), ns, 2 * tokens / 1000 + 1) << n << " tokens";
}

TEST(BuiltinCosts, AnUnknownNameListsTheKnown) {
  const Status status = builtin_cost_model("h100").status();
  ASSERT_TRUE(status.is(ErrorKind::kInvalid));
  EXPECT_EQ(status.message(),
            "no cost model is called 'h100'; there are h200-llama7b, bytescale-fig6");
}

TEST(BuiltinCosts, EachNameHasAModelOfThatName) {
  for (const std::string_view name : builtin_cost_model_names()) {
    const CostModel m = known_model(name);
    EXPECT_EQ(m.name, name);
    EXPECT_EQ(m.version, 1u);
    EXPECT_EQ(m.layers, 32u);
    EXPECT_EQ(m.launch_ns, 150'000u);
    EXPECT_EQ(m.kv_bytes_per_token, 4'096u);
    EXPECT_EQ(m.activation_bytes_per_token, 119'424u);
    EXPECT_EQ(m.encoder.time_ns(1'000'000), 0u);
    EXPECT_EQ(m.attention.growth(), CostCurve::Growth::kQuadratic);
    EXPECT_EQ(m.attention_forward.growth(), CostCurve::Growth::kQuadratic);
    EXPECT_EQ(m.linear.growth(), CostCurve::Growth::kLinear);
    EXPECT_EQ(m.linear_forward.growth(), CostCurve::Growth::kLinear);
  }
}

TEST(BuiltinCosts, H200HasTheMeasuredTimes) {
  const CostModel m = known_model("h200-llama7b");
  expect_time(m.attention, 512, (0.03347200155258179 + 0.16467200219631195) * 1e6);
  expect_time(m.attention, 8192, (0.9093760251998901 + 2.6782400608062744) * 1e6);
  expect_time(m.attention, 131072, (251.98118591308594 + 655.0684204101562) * 1e6);
  expect_time(m.attention_forward, 8192, 0.9093760251998901 * 1e6);
  expect_time(m.linear, 512, 1.8166719675064087 * 1e6);
  expect_time(m.linear, 32768, 62.586238861083984 * 1e6);
  expect_time(m.linear_forward, 32768, 23.056095123291016 * 1e6);
  EXPECT_EQ(m.copy_bytes_per_s, 55'160'087'572u) << "to the host, 1 GiB at once";
  EXPECT_EQ(m.attention.points().size(), 9u);
  EXPECT_EQ(m.linear.points().size(), 7u);
}

TEST(BuiltinCosts, H200FollowsTheDefinitionBesideThePoints) {
  const CostModel m = known_model("h200-llama7b");
  const MeasuredMs attention_4k{4096, 0.3150080144405365 + 0.9335039854049683};
  const MeasuredMs attention_8k{8192, 0.9093760251998901 + 2.6782400608062744};
  const MeasuredMs linear_1k{1024, 2.448575973510742};
  const MeasuredMs linear_2k{2048, 4.065695762634277};
  for (const double part : {0.01, 0.25, 0.5, 0.75, 0.99}) {
    const double long_n = std::floor(4096 * (1 + part));
    expect_time(m.attention, long_n, between(attention_4k, attention_8k, long_n));
    const double short_n = std::floor(1024 * (1 + part));
    expect_time(m.linear, short_n, between(linear_1k, linear_2k, short_n));
  }
  EXPECT_EQ(m.attention.time_ns(1), m.attention.time_ns(512));
  EXPECT_EQ(m.linear.time_ns(1), m.linear.time_ns(512));
  expect_time(m.attention, 2 << 20, (251.98118591308594 + 655.0684204101562) * 256e6);
  expect_time(m.linear, 1 << 20, 62.586238861083984 * 32e6);
}

TEST(BuiltinCosts, Fig6HasThePublishedForwardTimesAndWhatFollows) {
  const CostModel m = known_model("bytescale-fig6");
  const std::uint64_t attention_us[] = {800, 1'800, 4'800, 14'100, 48'200, 175'500};
  const std::uint64_t linear_us[] = {900, 1'800, 3'600, 7'500, 15'100, 28'200};
  for (std::size_t i = 0; i < 6; ++i) {
    const std::uint64_t tokens = 4096ULL << i;
    EXPECT_EQ(m.attention_forward.time_ns(tokens), attention_us[i] * 1'000);
    EXPECT_EQ(m.linear_forward.time_ns(tokens), linear_us[i] * 1'000);
  }
  EXPECT_EQ(m.attention.time_ns(65536), 168'700'000u) << "2 + 5 products";
  EXPECT_EQ(m.linear.time_ns(65536), 45'300'000u) << "1 + 2 products";
  EXPECT_EQ(m.attention_forward.time_ns(262144), 4u * 175'500'000u);
  EXPECT_EQ(m.linear_forward.time_ns(262144), 2u * 28'200'000u);
}

/// Where a curve only hardly ever falls (cost_curve.h), these never do.
TEST(BuiltinCosts, NeverFall) {
  for (const std::string_view name : builtin_cost_model_names()) {
    const CostModel m = known_model(name);
    for (const CostCurve* curve :
         {&m.attention, &m.attention_forward, &m.linear, &m.linear_forward}) {
      std::uint64_t before = 0;
      std::uint64_t falls = 0;
      for (std::uint64_t n = 0; n <= 2 * std::uint64_t{curve->points().back().tokens}; ++n) {
        const std::uint64_t now = curve->time_ns(n);
        falls += now < before ? 1 : 0;
        before = now;
      }
      EXPECT_EQ(falls, 0u) << name << ", curve with " << curve->points().size() << " points";
    }
  }
}

}  // namespace
}  // namespace batchloom::planning
