// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_items.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace batchloom::planning {
namespace {

TEST(RankItems, AscendByRank) {
  const RankItems items(3, std::vector<std::uint32_t>{2, 0, 2, 2});
  EXPECT_THAT(items.of(0), testing::ElementsAre(1));
  EXPECT_THAT(items.of(1), testing::ElementsAre());
  EXPECT_THAT(items.of(2), testing::ElementsAre(0, 2, 3));
}

RC_GTEST_PROP(RankItems, FollowEveryMove, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto rank = rc::gen::inRange<std::uint32_t>(0, ranks);
  const auto rank_of = *rc::gen::container<std::vector<std::uint32_t>>(rank);
  RankItems items(ranks, rank_of);
  std::vector<std::set<std::uint32_t>> expected(ranks);
  for (std::uint32_t item = 0; item < rank_of.size(); ++item) expected[rank_of[item]].insert(item);
  const auto moves = *rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint32_t>>>(
      rc::gen::pair(rc::gen::arbitrary<std::uint32_t>(), rank));
  std::vector<std::uint32_t> now = rank_of;
  for (const auto& [any, to] : moves) {
    if (now.empty()) break;
    const auto item = any % static_cast<std::uint32_t>(now.size());
    items.remove(now[item], item);
    expected[now[item]].erase(item);
    items.insert(to, item);
    expected[to].insert(item);
    now[item] = to;
  }
  for (std::uint32_t of = 0; of < ranks; ++of) {
    RC_ASSERT(std::ranges::equal(items.of(of), expected[of]));
  }
}

}  // namespace
}  // namespace batchloom::planning
