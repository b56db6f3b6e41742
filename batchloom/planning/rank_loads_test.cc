// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_loads.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/load_repair.h"

namespace batchloom::planning {
namespace {

constexpr std::uint32_t kCapacity = 8192;

HdpCosts costs_of(std::uint32_t ranks) {
  return HdpCosts::create(builtin_cost_model("h200-llama7b").value(), {.ranks = ranks}).value();
}

std::vector<ShortSample> shorts_of(const HdpCosts& costs, std::vector<std::uint32_t> tokens) {
  return make_problem(costs, tokens, [](std::uint32_t row) { return std::to_string(row); })->shorts;
}

/// Every sample is on one rank, no pack is too large, and each rank ends when its packs do.
void check_loads(const HdpCosts& costs, const std::vector<ShortSample>& shorts,
                 const RankLoads& loads) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t rank = 0; rank < loads.ranks(); ++rank) {
    std::uint64_t end_ns = loads.begin_ns(rank);
    loads.for_each_pack(rank, [&](std::span<const std::uint32_t> items, std::uint32_t tokens) {
      std::uint32_t sum = 0;
      for (const std::uint32_t item : items) {
        RC_ASSERT(seen.insert(item).second);
        sum += shorts[item].tokens;
        end_ns += shorts[item].attention_ns;
      }
      RC_ASSERT(sum == tokens);
      RC_ASSERT(tokens <= kCapacity);
      end_ns += costs.rest_ns(tokens);
    });
    RC_ASSERT(end_ns == loads.end_ns(rank));
  }
  RC_ASSERT(seen.size() == shorts.size());
}

RC_GTEST_PROP(RankLoads, HoldEverySampleOnce, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 20);
  const HdpCosts costs = costs_of(ranks);
  const auto length = rc::gen::inRange<std::uint32_t>(1, kCapacity + 1);
  const auto shorts = shorts_of(costs, *rc::gen::container<std::vector<std::uint32_t>>(length));
  const auto begin = rc::gen::inRange<std::uint64_t>(0, 100'000'000);
  RankLoads loads(costs, shorts, *rc::gen::container<std::vector<std::uint64_t>>(ranks, begin));
  loads.spread();
  check_loads(costs, shorts, loads);
  const std::uint64_t before = loads.makespan_ns();
  repair_loads(loads, 0, {.rounds = 3, .steps = 200});
  check_loads(costs, shorts, loads);
  RC_ASSERT(loads.makespan_ns() <= before);
}

TEST(RankLoads, SpreadEvenly) {
  const HdpCosts costs = costs_of(4);
  const auto shorts = shorts_of(costs, std::vector<std::uint32_t>(12, 2000));
  RankLoads loads(costs, shorts, std::vector<std::uint64_t>(4, 0));
  loads.spread();
  for (std::uint32_t rank = 1; rank < 4; ++rank) EXPECT_EQ(loads.end_ns(rank), loads.end_ns(0));
  EXPECT_EQ(loads.makespan_ns(), 3 * costs.attention_ns(2000) + costs.rest_ns(6000));
}

TEST(RankLoads, FillUpWhatGangsLeave) {
  const HdpCosts costs = costs_of(2);
  const auto shorts = shorts_of(costs, {1000, 1000, 1000, 1000});
  RankLoads loads(costs, shorts, {1'000'000'000, 0});
  loads.spread();
  EXPECT_EQ(loads.end_ns(0), 1'000'000'000U);
}

TEST(RankLoads, AnExchangeSaysWhenBothWillEnd) {
  const HdpCosts costs = costs_of(2);
  const auto shorts = shorts_of(costs, {8000, 5000, 4000, 3000, 700, 600});
  RankLoads loads(costs, shorts, {0, 9'000'000});
  loads.spread();
  // All to one rank: then the other has room for some of them.
  for (std::uint32_t item = 0; item < shorts.size(); ++item) {
    const auto is_of = [&](std::uint32_t rank) {
      return std::ranges::count(loads.items_of(rank), item) == 1;
    };
    if (is_of(1)) loads.apply(1, 0, loads.evaluate(1, 0, item, RankLoads::kNone));
  }
  check_loads(costs, shorts, loads);
  EXPECT_EQ(loads.end_ns(1), 9'000'000U);
  const std::uint64_t before = loads.end_ns(0);
  const auto found = loads.find_exchange(0, 1, (before - loads.end_ns(1)) / 2);
  ASSERT_TRUE(found.has_value());
  EXPECT_LT(std::max(found->from_end_ns, found->to_end_ns), before);
  loads.apply(0, 1, *found);
  check_loads(costs, shorts, loads);  // The ends that it stated are those that there are.
}

TEST(LoadRepair, BringsTheLastRankForward) {
  const HdpCosts costs = costs_of(8);
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 300; ++i) tokens.push_back(513 + i * i * 37 % 7000);
  const auto shorts = shorts_of(costs, tokens);
  RankLoads loads(costs, shorts, {0, 1'000'000, 2'000'000, 0, 30'000'000, 0, 7, 0});
  loads.spread();
  const std::uint64_t before = loads.makespan_ns();
  std::uint64_t sum = 0;
  for (std::uint32_t rank = 0; rank < 8; ++rank) sum += loads.end_ns(rank);
  repair_loads(loads, sum / 8, {});
  EXPECT_LT(loads.makespan_ns(), before);
  EXPECT_LE(loads.makespan_ns(), sum / 8 / 1000 * 1005);
  check_loads(costs, shorts, loads);
}

}  // namespace
}  // namespace batchloom::planning
