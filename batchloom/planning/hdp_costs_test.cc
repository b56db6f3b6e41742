// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_costs.h"

#include <gtest/gtest.h>

#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"

namespace batchloom::planning {
namespace {

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

TEST(HdpCosts, RefuseNothingToRunOn) {
  for (const HdpShape& shape :
       {HdpShape{.ranks = 0}, HdpShape{.capacity_tokens = 0}, HdpShape{.min_share_tokens = 0}}) {
    EXPECT_TRUE(HdpCosts::create(h200(), shape).is(ErrorKind::kInvalid));
  }
}

}  // namespace
}  // namespace batchloom::planning
