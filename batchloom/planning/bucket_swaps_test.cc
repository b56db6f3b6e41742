// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/bucket_swaps.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace batchloom::planning {
namespace {

using Costs = std::vector<std::uint64_t>;

std::vector<std::uint64_t> loads_of(const Costs& costs, const Buckets& of, std::uint32_t buckets) {
  std::vector<std::uint64_t> loads(buckets, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) loads[of[i]] += costs[i];
  return loads;
}

/// By trying all assignments.
std::uint64_t best_of_all(const Costs& costs, std::uint32_t buckets) {
  std::uint64_t best = UINT64_MAX;
  Buckets of(costs.size(), 0);
  while (true) {
    best = std::min(best, fullest(costs, of, buckets));
    std::size_t at = 0;
    while (at < of.size() && ++of[at] == buckets) of[at++] = 0;
    if (at == of.size()) return best;
  }
}

TEST(BucketSwaps, ExchangesWhatBringsTwoBucketsTogether) {
  const Costs costs = {9, 7, 5, 3};
  Buckets of = {0, 0, 1, 1};  // 16 and 8: exchanging 9 for 5, or 7 for 3, makes 12 each.
  even_out(costs, 2, 10, of);
  EXPECT_EQ(loads_of(costs, of, 2), (Costs{12, 12}));
}

TEST(BucketSwaps, MovesWhereTheOtherHasNothingToGive) {
  const Costs costs = {4, 3, 2};
  Buckets of = {0, 0, 0};
  even_out(costs, 2, 10, of);
  EXPECT_EQ(fullest(costs, of, 2), 5U);
}

TEST(BucketSwaps, StopsAfterSoManySteps) {
  const Costs costs(64, 1);
  Buckets of(64, 0);
  even_out(costs, 4, 1, of);
  EXPECT_EQ(std::ranges::count(of, 0U), 63);
  even_out(costs, 4, 0, of);
  EXPECT_EQ(std::ranges::count(of, 0U), 63);
  even_out(costs, 4, 1'000, of);
  EXPECT_EQ(loads_of(costs, of, 4), (Costs{16, 16, 16, 16}));
}

RC_GTEST_PROP(BucketSwaps, NeverRaisesTheFullestBucketAndKeepsEveryItem, ()) {
  const auto costs = *rc::gen::container<Costs>(rc::gen::inRange<std::uint64_t>(0, 1'000));
  const auto buckets = *rc::gen::inRange<std::uint32_t>(1, 12);
  Buckets of;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    of.push_back(*rc::gen::inRange<std::uint32_t>(0, buckets));
  }
  const std::uint64_t before = fullest(costs, of, buckets);
  even_out(costs, buckets, 10'000, of);
  RC_ASSERT(of.size() == costs.size());
  RC_ASSERT(fullest(costs, of, buckets) <= before);
  RC_ASSERT(fullest(costs, of, buckets) >= least_fullest(costs, buckets));
  Buckets again = of;
  even_out(costs, buckets, 10'000, again);
  RC_ASSERT(again == of);
}

RC_GTEST_PROP(BucketSwaps, TheBoundIsOne, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 8);
  const auto costs = *rc::gen::container<Costs>(count, rc::gen::inRange<std::uint64_t>(0, 30));
  const auto buckets = *rc::gen::inRange<std::uint32_t>(1, 4);
  RC_ASSERT(least_fullest(costs, buckets) <= best_of_all(costs, buckets));
}

TEST(BucketSwaps, TheBoundKnowsThatTwoLargeItemsShareABucket) {
  EXPECT_EQ(least_fullest(Costs{5, 5, 5, 1}, 2), 10U);
  EXPECT_EQ(least_fullest(Costs{5, 5, 5}, 3), 5U);
  EXPECT_EQ(least_fullest(Costs{}, 3), 0U);
  EXPECT_EQ(fullest(Costs{}, Buckets{}, 3), 0U);
}

}  // namespace
}  // namespace batchloom::planning
