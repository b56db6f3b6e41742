// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/balance.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace batchloom::planning {
namespace {

using testing::ElementsAre;

std::uint64_t largest(std::span<const std::uint64_t> costs, const Buckets& of,
                      std::uint32_t buckets) {
  std::vector<std::uint64_t> sums(buckets, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) sums.at(of.at(i)) += costs[i];
  return std::ranges::max(sums);
}

/// By trying every assignment.
std::uint64_t best_largest(std::span<const std::uint64_t> costs, std::uint32_t buckets) {
  std::uint64_t ways = 1;
  for (std::size_t i = 0; i < costs.size(); ++i) ways *= buckets;
  std::uint64_t best = UINT64_MAX;
  for (std::uint64_t way = 0; way < ways; ++way) {
    Buckets of;
    for (std::uint64_t rest = way; of.size() < costs.size(); rest /= buckets) {
      of.push_back(static_cast<std::uint32_t>(rest % buckets));
    }
    best = std::min(best, largest(costs, of, buckets));
  }
  return best;
}

rc::Gen<std::vector<std::uint64_t>> few_costs() {
  return rc::gen::resize(
      6, rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 100)));
}

RC_GTEST_PROP(Balance, LptStaysWithinItsGuarantee, ()) {
  const auto costs = *few_costs();
  const auto buckets = *rc::gen::inRange<std::uint32_t>(1, 4);
  const std::uint64_t ours = largest(costs, balance_lpt(costs, buckets), buckets);
  const std::uint64_t best = best_largest(costs, buckets);
  RC_ASSERT(ours >= best);
  RC_ASSERT(3 * buckets * ours <= (4 * buckets - 1) * best);
}

RC_GTEST_PROP(Balance, KarmarkarKarpPlacesEveryItem, ()) {
  const auto costs = *few_costs();
  const auto buckets = *rc::gen::inRange<std::uint32_t>(1, 4);
  const std::uint64_t ours = largest(costs, balance_karmarkar_karp(costs, buckets), buckets);
  const std::uint64_t best = best_largest(costs, buckets);
  RC_ASSERT(ours >= best);
  if (buckets == 2) RC_ASSERT(6 * ours <= 7 * best);  // Fischetti and Martello, 1987.
}

TEST(Balance, LptTakesTheLongestFirst) {
  const std::vector<std::uint64_t> costs = {1, 7, 5, 5, 2};
  EXPECT_THAT(balance_lpt(costs, 2), ElementsAre(0, 0, 1, 1, 0));
}

TEST(Balance, KarmarkarKarpFindsWhatLptMisses) {
  const std::vector<std::uint64_t> costs = {8, 7, 6, 5, 4};
  EXPECT_EQ(largest(costs, balance_karmarkar_karp(costs, 2), 2), 16U);
  EXPECT_EQ(largest(costs, balance_lpt(costs, 2), 2), 17U);
}

TEST(Balance, OfManyItemsIsClose) {
  std::vector<std::uint64_t> costs;
  for (std::uint64_t i = 1; i <= 500; ++i) costs.push_back(i * i * 7919 % 10'007);
  const double lpt = imbalance_of(costs, balance_lpt(costs, 16), 16);
  const double kk = imbalance_of(costs, balance_karmarkar_karp(costs, 16), 16);
  EXPECT_LT(lpt, 1.001);
  EXPECT_LT(kk, lpt);
}

RC_GTEST_PROP(Balance, BinsKeepTheirCapacity, ()) {
  const auto sizes =
      *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 101));
  std::vector<SizedItem> items;
  for (const std::uint32_t size : sizes) items.push_back({std::uint64_t{size} * size, size});
  const std::uint32_t bins = count_bins(items, 100).value();
  const auto buckets = balance_within(items, bins, 100);
  RC_ASSERT(buckets.has_value());
  std::vector<std::uint32_t> filled(bins, 0);
  for (std::size_t i = 0; i < items.size(); ++i) filled.at(buckets->at(i)) += items[i].size;
  for (const std::uint32_t size : filled) RC_ASSERT(size <= 100U);
}

TEST(Balance, BinsAreOfEqualCostWhereSizesAllow) {
  const std::vector<SizedItem> items = {{90, 10}, {80, 10}, {20, 50}, {10, 50}};
  EXPECT_THAT(*balance_within(items, 2, 60), ElementsAre(0, 1, 1, 0));
}

TEST(Balance, WhatIsTooLargeFitsIntoNoBin) {
  const std::vector<SizedItem> items = {{1, 5}, {1, 11}};
  EXPECT_EQ(count_bins(items, 10), std::nullopt);
  EXPECT_EQ(balance_within(items, 5, 10), std::nullopt);
  EXPECT_EQ(count_bins({}, 10), 0U);
}

TEST(Balance, NothingIsBalanced) {
  EXPECT_TRUE(balance_lpt({}, 3).empty());
  EXPECT_TRUE(balance_karmarkar_karp({}, 3).empty());
  EXPECT_EQ(imbalance_of({}, {}, 3), 1);
}

}  // namespace
}  // namespace batchloom::planning
