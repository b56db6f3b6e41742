// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_levels.h"

#include <gtest/gtest.h>

namespace batchloom::planning {
namespace {

using model::Axis;

constexpr std::uint64_t kGB = 1'000'000'000;

model::Topology topology_with(std::vector<model::AxisExtent> axes,
                              std::vector<model::Level> levels) {
  return model::Topology::create(std::move(axes), std::move(levels)).value();
}

TEST(RankLevels, AreThoseOfTheTopology) {
  const RankLevels levels(topology_with(
      {{Axis::kDp, 16}},
      {{"island", 4, 400 * kGB, 1}, {"leaf", 8, 100 * kGB, 2}, {"spine", 16, 50 * kGB, 3}}));
  ASSERT_EQ(levels.count(), 3U);
  EXPECT_EQ(levels.widest(0), 4U);
  EXPECT_EQ(levels.widest(1), 8U);
  EXPECT_EQ(levels.group_of(0, 7), 1U);
  EXPECT_EQ(levels.joining(4, 7), 0U);
  EXPECT_EQ(levels.joining(3, 4), 1U);
  EXPECT_EQ(levels.joining(7, 8), 2U);
  EXPECT_EQ(levels.innermost_of(4), 0U);
  EXPECT_EQ(levels.innermost_of(5), 1U);
  EXPECT_EQ(levels.innermost_of(16), 2U);
  EXPECT_EQ(levels.bandwidth_bytes_per_s(1), 100 * kGB);
  EXPECT_EQ(levels.latency_ns(2), 3U);
}

TEST(RankLevels, CountSlicesNotRanks) {
  // An island of 8 ranks holds 4 slices of 2; and of pipelines of 4 stages, those whose first
  // stages lie in it.
  const std::vector<model::Level> island = {{"island", 8, kGB, 0}, {"all", 64, kGB, 0}};
  const RankLevels by_tp(topology_with({{Axis::kDp, 32}, {Axis::kTp, 2}}, island));
  EXPECT_EQ(by_tp.widest(0), 4U);
  EXPECT_EQ(by_tp.joining(3, 4), 1U);
  const RankLevels by_pp(topology_with({{Axis::kPp, 4}, {Axis::kDp, 16}}, island));
  EXPECT_EQ(by_pp.widest(0), 8U);
}

TEST(RankLevels, LeaveOutThoseOfOneSlice) {
  const RankLevels levels(topology_with({{Axis::kDp, 4}, {Axis::kTp, 8}},
                                        {{"island", 8, 400 * kGB, 0}, {"all", 32, 50 * kGB, 0}}));
  ASSERT_EQ(levels.count(), 1U);
  EXPECT_EQ(levels.widest(0), 4U);
  EXPECT_EQ(levels.bandwidth_bytes_per_s(0), 50 * kGB);
}

TEST(RankLevels, TheLastOneJoinsAll) {
  const RankLevels islands(topology_with({{Axis::kDp, 6}}, {{"island", 4, kGB, 0}}));
  EXPECT_EQ(islands.count(), 1U);
  EXPECT_EQ(islands.joining(0, 5), 0U);
  const RankLevels none(topology_with({{Axis::kDp, 6}}, {}));
  EXPECT_EQ(none.count(), 1U);
  EXPECT_EQ(none.widest(0), 6U);
  EXPECT_EQ(none.bandwidth_bytes_per_s(0), 0U);
}

TEST(RankLevels, OuterLinksAreNoFasterThanInnerOnes) {
  const RankLevels levels(
      topology_with({{Axis::kDp, 8}}, {{"island", 4, 50 * kGB, 9}, {"all", 8, 400 * kGB, 1}}));
  EXPECT_EQ(levels.bandwidth_bytes_per_s(1), 50 * kGB);
  EXPECT_EQ(levels.latency_ns(1), 9U);
}

}  // namespace
}  // namespace batchloom::planning
