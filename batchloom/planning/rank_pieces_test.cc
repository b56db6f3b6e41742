// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_pieces.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace batchloom::planning {
namespace {

using testing::ElementsAre;

/// Islands of 4, leaves of 12.
RankLevels three_levels(std::uint32_t ranks) {
  return RankLevels(model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}},
                                            {{"island", 4, 3'000'000, 0},
                                             {"leaf", 12, 2'000'000, 0},
                                             {"spine", ranks * 12, 1'000'000, 0}})
                        .value());
}

std::vector<std::uint32_t> members_of(const RankPieces& pieces) {
  std::vector<model::HdpRank> members;
  pieces.append_to(members);
  std::vector<std::uint32_t> values;
  for (const model::HdpRank rank : members) values.push_back(rank.value);
  return values;
}

std::set<std::uint32_t> islands_of(const RankLevels& levels, const RankPieces& pieces) {
  std::set<std::uint32_t> islands;
  for (const std::uint32_t rank : members_of(pieces)) islands.insert(levels.group_of(0, rank));
  return islands;
}

TEST(RankPieces, TakeTheSmallestIslandThatIsEnough) {
  const RankLevels levels = three_levels(24);
  RankPieces all(levels, 24);
  EXPECT_THAT(members_of(all.take(levels, 3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(members_of(all.take(levels, 2)), ElementsAre(4, 5));
  EXPECT_THAT(members_of(all.take(levels, 1)), ElementsAre(3)) << "not half of a larger one";
  EXPECT_THAT(members_of(all.take(levels, 2)), ElementsAre(6, 7));
  EXPECT_EQ(all.ranks(), 16U);
  EXPECT_EQ(all.widest(), 4U);
}

TEST(RankPieces, TakeFewIslandsOfOneLeaf) {
  const RankLevels levels = three_levels(24);
  RankPieces all(levels, 24);
  EXPECT_THAT(members_of(all.take(levels, 3)), ElementsAre(0, 1, 2));
  const RankPieces nine = all.take(levels, 9);
  EXPECT_THAT(members_of(nine), ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11))
      << "the leaf that is just large enough";
  EXPECT_EQ(nine.level(levels), 1U);
  const RankPieces ten = all.take(levels, 10);
  EXPECT_EQ(islands_of(levels, ten).size(), 3U);
  EXPECT_EQ(all.ranks(), 2U);
}

TEST(RankPieces, TakeFromAllWhereNoLeafIsEnough) {
  const RankLevels levels = three_levels(24);
  RankPieces all(levels, 24);
  const RankPieces fourteen = all.take(levels, 14);
  EXPECT_EQ(islands_of(levels, fourteen).size(), 4U);
  EXPECT_EQ(fourteen.level(levels), 2U);
}

RC_GTEST_PROP(RankPieces, TakingPartsASet, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 60);
  const RankLevels levels = three_levels(ranks);
  RankPieces rest(levels, ranks);
  std::set<std::uint32_t> taken;
  while (rest.ranks() > 0) {
    const auto count = *rc::gen::inRange<std::uint32_t>(1, rest.ranks() + 1);
    const std::uint32_t widest = rest.widest();
    const RankPieces part = rest.take(levels, count);
    const auto members = members_of(part);
    RC_ASSERT(members.size() == count);
    RC_ASSERT(part.ranks() == count);
    RC_ASSERT(std::ranges::is_sorted(members));
    for (const std::uint32_t rank : members) RC_ASSERT(taken.insert(rank).second);
    if (count <= widest) RC_ASSERT(islands_of(levels, part).size() == 1U);
    RC_ASSERT(part.level(levels) == levels.joining(members.front(), members.back()));
  }
  RC_ASSERT(taken.size() == ranks);
}

RC_GTEST_PROP(RankPieces, AFreshSetTouchesTheFewestIslands, ()) {
  const auto leaves = *rc::gen::inRange<std::uint32_t>(1, 6);
  const RankLevels levels = three_levels(leaves * 12);
  RankPieces all(levels, leaves * 12);
  const auto count = *rc::gen::inRange<std::uint32_t>(1, all.ranks() + 1);
  RC_ASSERT(islands_of(levels, all.take(levels, count)).size() == (count + 3) / 4);
}

}  // namespace
}  // namespace batchloom::planning
