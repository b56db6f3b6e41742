// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

CostModel h200() {
  return builtin_cost_model("h200-llama7b").value();
}

HdpCosts costs_of(const HdpShape& shape) {
  return HdpCosts::create(h200(), shape).value();
}

TEST(HdpCosts, AreThoseOfTheModel) {
  const CostModel model = h200();
  const HdpCosts costs = costs_of({.ranks = 4, .capacity_tokens = 1000});
  for (const std::uint32_t tokens : {1U, 600U, 1000U, 1001U, 100'000U}) {
    EXPECT_EQ(costs.attention_ns(tokens), model.attention.time_ns(tokens));
    EXPECT_EQ(costs.rest_ns(tokens), model.linear.time_ns(tokens) + model.launch_ns);
  }
  EXPECT_EQ(costs.gang_ns(100, 2001, 2), 50 + costs.rest_ns(1001)) << "the longer share";
  EXPECT_EQ(costs.gang_ns(101, 2000, 2), 51 + costs.rest_ns(1000)) << "rounded up";
}

TEST(HdpCosts, WhatNoMachineHasIsRefused) {
  CostModel model = builtin_cost_model("h200-llama7b").value();
  const auto refusal = [&](const HdpShape& shape) {
    return HdpCosts::create(model, shape).status().to_string();
  };
  EXPECT_THAT(refusal({.ranks = 4, .capacity_tokens = kMaxCapacityTokens + 1}),
              HasSubstr("4 ranks of 16777217 tokens; the most are 1048576 of 16777216"));
  EXPECT_THAT(refusal({.ranks = kMaxHdpRanks + 1, .capacity_tokens = 8}),
              HasSubstr("1048577 ranks of 8 tokens; the most are"));
  model.layers = kMaxLayers + 1;
  EXPECT_THAT(refusal({.ranks = 4, .capacity_tokens = 8}), HasSubstr("layers is 65537"));
}

TEST(HdpCosts, NoPackIsCheaperByTokenThanTheLeast) {
  const HdpCosts costs = costs_of({.ranks = 4});
  bool reached = false;
  for (std::uint32_t tokens = 1; tokens <= 8192; ++tokens) {
    EXPECT_LE(costs.least_rest_ns(tokens), costs.rest_ns(tokens)) << tokens;
    reached = reached || costs.least_rest_ns(tokens) == costs.rest_ns(tokens);
  }
  EXPECT_TRUE(reached);
}

void expect_degrees(const HdpCosts& costs, std::uint32_t tokens, DegreeRange expected) {
  const DegreeRange range = costs.degrees(tokens);
  EXPECT_EQ(range.min, expected.min) << tokens;
  EXPECT_EQ(range.max, expected.max) << tokens;
}

TEST(HdpCosts, DegreesFollowFromCapacityAndLeastShare) {
  const HdpCosts costs = costs_of({.ranks = 10, .capacity_tokens = 100, .min_share_tokens = 40});
  expect_degrees(costs, 100, {1, 2});
  expect_degrees(costs, 101, {2, 2});
  expect_degrees(costs, 119, {2, 2});
  expect_degrees(costs, 200, {2, 5});
  expect_degrees(costs, 900, {9, 10});
  expect_degrees(costs, 1000, {10, 10});
}

TEST(HdpCosts, WhatFitsOnNoRanksMayUseTheHost) {
  const HdpShape shape{.ranks = 10, .capacity_tokens = 100, .min_share_tokens = 40};
  const HdpCosts costs = costs_of(shape);
  expect_degrees(costs, 1001, {5, 10});
  expect_degrees(costs, 9600, {6, 10});  // 1,600 tokens a rank at most: 100 x 32 / 2.
  expect_degrees(costs, 16'000, {10, 10});
  expect_degrees(costs, 16'001, {0, 0});
  HdpShape without = shape;
  without.offload = false;
  expect_degrees(costs_of(without), 1001, {0, 0});
  CostModel shallow = h200();
  shallow.layers = 2;
  expect_degrees(HdpCosts::create(shallow, shape).value(), 1001, {0, 0});
}

/// By the formula that plans are checked against.
bool fits(std::uint64_t share, std::uint64_t offload, std::uint64_t capacity,
          std::uint64_t layers) {
  const std::uint64_t all = model::kOffloadAll.value;
  return (2 * all + (all - offload) * (layers - 2)) * share <= layers * capacity * all;
}

TEST(HdpCosts, OffloadIsTheLeastThatMakesRoom) {
  const HdpCosts costs = costs_of({.ranks = 10, .capacity_tokens = 100});
  EXPECT_EQ(costs.offload(1).value, 0U);
  EXPECT_EQ(costs.offload(100).value, 0U);
  for (std::uint32_t share = 101; share <= 1600; ++share) {
    const std::uint32_t offload = costs.offload(share).value;
    EXPECT_TRUE(fits(share, offload, 100, 32)) << share;
    EXPECT_FALSE(fits(share, offload - 1, 100, 32)) << share;
  }
  EXPECT_EQ(costs.offload(1600), model::kOffloadAll);
}

TEST(HdpCosts, AnyLongSampleMayUseTheHostWhereAsked) {
  const HdpCosts costs =
      costs_of({.ranks = 10, .capacity_tokens = 100, .min_share_tokens = 40, .offload_any = true});
  expect_degrees(costs, 101, {1, 2});
  expect_degrees(costs, 1000, {1, 10});
  expect_degrees(costs, 1601, {2, 10});
  expect_degrees(costs, 16'000, {10, 10});
  expect_degrees(costs, 16'001, {0, 0});
}

/// Four ranks an island.
std::vector<RingLink> links_of(std::uint32_t ranks) {
  return {{.ranks = 4, .bandwidth_bytes_per_s = 400'000'000'000, .latency_ns = 1000},
          {.ranks = ranks, .bandwidth_bytes_per_s = 50'000'000'000, .latency_ns = 5000}};
}

TEST(HdpCosts, ARingTakesWhatItsHopsTakeLongerThanItsSteps) {
  const CostModel model = h200();
  const HdpCosts costs = costs_of({.ranks = 16, .links = links_of(16)});
  const std::uint32_t tokens = 40'000;
  const std::uint64_t attention = model.attention.time_ns(tokens);
  const std::uint64_t forward = model.attention_forward.time_ns(tokens) / 10 + 1;
  const std::uint64_t backward = attention / 10 + 1 - forward;
  // 4,000 tokens of 4 KiB, at 50 GB/s, and twice that.
  const std::uint64_t hop = 4000 * model.kv_bytes_per_token / 50 + 1 + 5000;
  const std::uint64_t hop_back = 4000 * 2 * model.kv_bytes_per_token / 50 + 1 + 5000;
  const auto wait = [](std::uint64_t hop_ns, std::uint64_t step_ns) {
    return hop_ns > step_ns ? 9 * (hop_ns - step_ns) : 0;
  };
  const std::uint64_t expected = attention / 10 + 1 + wait(hop, forward / 10) +
                                 wait(hop_back, backward / 10) + costs.rest_ns(4000);
  EXPECT_NEAR(static_cast<double>(costs.gang_ns(attention, tokens, 10, 1)),
              static_cast<double>(expected), 40);
  EXPECT_GT(expected, attention / 10 + costs.rest_ns(4000)) << "so that there is a wait";
}

TEST(HdpCosts, TheBestRingLiesInOneIsland) {
  const HdpCosts costs = costs_of({.ranks = 16, .links = links_of(16)});
  const std::uint64_t attention = costs.attention_ns(9000);
  EXPECT_EQ(costs.gang_ns(attention, 9000, 4), costs.gang_ns(attention, 9000, 4, 0));
  EXPECT_EQ(costs.gang_ns(attention, 9000, 5), costs.gang_ns(attention, 9000, 5, 1));
  EXPECT_LT(costs.gang_ns(attention, 9000, 4, 0), costs.gang_ns(attention, 9000, 4, 1));
  EXPECT_EQ(costs.gang_ns(attention, 9000, 1, 0),
            costs_of({.ranks = 16}).gang_ns(attention, 9000, 1))
      << "one rank has no ring";
}

TEST(HdpCosts, WhereNothingIsSentNoLatencyCounts) {
  CostModel model = h200();
  model.kv_bytes_per_token = 0;
  const HdpCosts costs = HdpCosts::create(model, {.ranks = 16, .links = links_of(16)}).value();
  const HdpCosts without = HdpCosts::create(model, {.ranks = 16}).value();
  EXPECT_EQ(costs.gang_ns(10, 40'000, 10, 1), without.gang_ns(10, 40'000, 10));
}

/// So a bound of the bytes that cross links is no higher than one of such times: see 0005.
RC_GTEST_PROP(HdpCosts, AGangTakesAsLongAsItsRingSends, ()) {
  CostModel model = h200();
  model.kv_bytes_per_token = *rc::gen::inRange<std::uint64_t>(0, 100'000);
  HdpShape shape{.ranks = 16, .links = links_of(16)};
  shape.links[0].bandwidth_bytes_per_s = *rc::gen::inRange<std::uint64_t>(2, 400) * 1'000'000'000;
  shape.links[1].bandwidth_bytes_per_s =
      *rc::gen::inRange<std::uint64_t>(1, shape.links[0].bandwidth_bytes_per_s / 1000) * 1000;
  shape.backward_bytes_factor = *rc::gen::inRange<std::uint32_t>(0, 5);
  const HdpCosts costs = HdpCosts::create(model, shape).value();
  const auto degree = *rc::gen::inRange<std::uint32_t>(1, 17);
  const auto tokens = *rc::gen::inRange<std::uint32_t>(1, degree * 8192 + 1);
  const auto level = *rc::gen::element<std::size_t>(0, 1);
  const PhaseTimes phases = costs.gang_phases(costs.attention_ns(tokens), tokens, degree, level);
  const auto sending_ns = [&](std::uint64_t factor) {
    const std::uint64_t share = (tokens + degree - 1) / degree;
    const double bytes = static_cast<double>((degree - 1) * share * factor) *
                         static_cast<double>(model.kv_bytes_per_token);
    return bytes / (static_cast<double>(shape.links[level].bandwidth_bytes_per_s) / 1e9);
  };
  RC_ASSERT(static_cast<double>(phases.forward_ns) >= sending_ns(1) * (1 - 1e-9));
  RC_ASSERT(static_cast<double>(phases.backward_ns) >=
            sending_ns(shape.backward_bytes_factor) * (1 - 1e-9));
}

TEST(HdpCosts, CopiesCountWhereTheyTakeLongerThanThePhase) {
  CostModel model = h200();
  const HdpShape shape{.ranks = 4};
  const std::uint32_t tokens = 8 * 8192;  // Two capacities on each rank.
  const std::uint64_t attention = model.attention.time_ns(tokens);
  const std::uint64_t computing =
      (attention + 3) / 4 + model.linear.time_ns(2 * 8192) + model.launch_ns;
  model.copy_bytes_per_s = 1'000'000'000'000'000;
  const HdpCosts fast = HdpCosts::create(model, shape).value();
  EXPECT_EQ(fast.gang_ns(attention, tokens, 4), computing);
  model.copy_bytes_per_s = 1'000'000'000;
  const HdpCosts slow = HdpCosts::create(model, shape).value();
  // In either phase, at 1 byte a nanosecond: what is offloaded of two capacities.
  const std::uint64_t bytes = std::uint64_t{2} * 8192 * model.activation_bytes_per_token *
                              slow.offload(2 * 8192).value / model::kOffloadAll.value;
  EXPECT_EQ(slow.gang_ns(attention, tokens, 4), 2 * bytes + model.launch_ns);
  EXPECT_GT(bytes, computing);
}

TEST(HdpCosts, RefuseLinksThatAreNone) {
  auto none = links_of(4);
  none[1].bandwidth_bytes_per_s = 0;
  EXPECT_TRUE(HdpCosts::create(h200(), {.links = none}).is(ErrorKind::kInvalid));
  auto faster = links_of(4);
  faster[1].bandwidth_bytes_per_s *= 10;
  EXPECT_TRUE(HdpCosts::create(h200(), {.links = faster}).is(ErrorKind::kInvalid));
}

TEST(HdpCosts, RefuseNothingToRunOn) {
  for (const HdpShape& shape :
       {HdpShape{.ranks = 0}, HdpShape{.capacity_tokens = 0}, HdpShape{.min_share_tokens = 0}}) {
    EXPECT_TRUE(HdpCosts::create(h200(), shape).is(ErrorKind::kInvalid));
  }
}

}  // namespace
}  // namespace batchloom::planning
