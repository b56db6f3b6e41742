// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/topology.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace batchloom::model {
namespace {

Topology topology(std::string_view axes) {
  return Topology::parse(axes).value();
}

/// Some of the axes in some order with small extents.
rc::Gen<Topology> any_topology() {
  using Extents = std::vector<std::uint32_t>;
  return rc::gen::map(rc::gen::tuple(rc::gen::inRange(0, 5), rc::gen::inRange(0, 24),
                                     rc::gen::container<Extents>(4, rc::gen::inRange(1u, 6u))),
                      [](const std::tuple<int, int, Extents>& drawn) {
                        const auto& [count, permutation, extents] = drawn;
                        std::vector<AxisExtent> axes;
                        for (std::uint8_t i = 0; i < 4; ++i)
                          axes.push_back({static_cast<Axis>(i), extents[i]});
                        for (int i = 0; i < permutation; ++i) {
                          std::ranges::next_permutation(axes, {}, &AxisExtent::axis);
                        }
                        axes.resize(static_cast<std::size_t>(count));
                        return Topology::create(std::move(axes)).value();
                      });
}

TEST(Topology, TheDefaultIsOneRank) {
  const Topology one;
  EXPECT_EQ(one.world_size(), 1u);
  EXPECT_EQ(one.hdp_size(), 1u);
  EXPECT_EQ(one.rank(one.coordinates(Rank(0))), Rank(0));
  EXPECT_EQ(to_string(one), "");
}

TEST(Topology, CountsTheInnermostAxisFirst) {
  const Topology t = topology("pp=3 dp=8 cp=2 tp=4");
  EXPECT_EQ(t.world_size(), 192u);
  EXPECT_EQ(t.hdp_size(), 16u);
  EXPECT_EQ(t.extent(Axis::kDp), 8u);
  const Coordinates c = t.coordinates(Rank(64 + 5 * 8 + 4 + 3));
  EXPECT_EQ(c[Axis::kPp], 1u);
  EXPECT_EQ(c[Axis::kDp], 5u);
  EXPECT_EQ(c[Axis::kCp], 1u);
  EXPECT_EQ(c[Axis::kTp], 3u);
  EXPECT_EQ(t.hdp_rank(Rank(64 + 5 * 8 + 4 + 3)), HdpRank(11));
}

TEST(Topology, AnAbsentAxisHasExtentOne) {
  const Topology t = topology("tp=2 dp=3");
  EXPECT_EQ(t.extent(Axis::kPp), 1u);
  EXPECT_EQ(t.hdp_rank(Rank(4)), HdpRank(1)) << "tp is the outer axis here";
}

RC_GTEST_PROP(Topology, RanksAndCoordinatesAreOneToOne, ()) {
  const Topology t = *any_topology();
  std::set<std::array<std::uint32_t, kAxisCount>> seen;
  for (Rank rank; rank.value < t.world_size(); ++rank) {
    const Coordinates c = t.coordinates(rank);
    for (const auto& [axis, extent] : t.axes()) RC_ASSERT(c[axis] < extent);
    RC_ASSERT(t.rank(c) == rank);
    RC_ASSERT(seen.insert(c.by_axis).second);
  }
}

RC_GTEST_PROP(Topology, HdpRanksAreSlicesOfEqualSize, ()) {
  const Topology t = *any_topology();
  std::vector<std::uint32_t> sizes(t.hdp_size(), 0);
  for (Rank rank; rank.value < t.world_size(); ++rank) {
    const HdpRank slice = t.hdp_rank(rank);
    ++sizes.at(slice.value);
    const Coordinates first = t.coordinates(slice);
    RC_ASSERT(first[Axis::kPp] == 0u && first[Axis::kTp] == 0u);
    RC_ASSERT(first[Axis::kDp] == t.coordinates(rank)[Axis::kDp]);
    RC_ASSERT(first[Axis::kCp] == t.coordinates(rank)[Axis::kCp]);
    RC_ASSERT(t.hdp_rank(t.rank(first)) == slice);
  }
  RC_ASSERT(std::ranges::count(sizes, t.world_size() / t.hdp_size()) == std::ssize(sizes));
}

RC_GTEST_PROP(Topology, TextRoundTrips, ()) {
  const Topology t =
      *rc::gen::suchThat(any_topology(), [](const Topology& any) { return !any.axes().empty(); });
  RC_ASSERT(Topology::parse(to_string(t)).value() == t);
}

TEST(Topology, SpacesDoNotMatter) {
  EXPECT_EQ(topology("  dp=8   tp=2 "), topology("dp=8 tp=2"));
}

TEST(Topology, WhatItRefusesAndSays) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "no axis is named"},
      {"   ", "no axis is named"},
      {"dp", "'dp' is not of the form axis=extent"},
      {"dp=2,tp=2", "'dp=2,tp=2' is not an integer"},
      {"xp=2", "'xp=2' names no axis"},
      {"dp=4 ep=2", "'ep=2' names no axis: an expert group is neighbours along dp"},
      {"=2", "'=2' names no axis"},
      {"DP=2", "'DP=2' names no axis"},
      {"dp=", "'dp=' is not an integer"},
      {"dp=2x", "'dp=2x' is not an integer"},
      {"dp=-1", "'dp=-1' is not an integer"},
      {"dp=4294967296", "'dp=4294967296' is not an integer that fits"},
      {"dp=2 tp=2 dp=1", "the axis dp is named twice"},
      {"dp=2 cp=0", "the axis cp has extent 0"},
      {"dp=65536 tp=65536", "make 4294967296 ranks"},
      {"pp=4294967295 dp=4294967295 cp=4294967295 tp=4294967295", "the most is 4294967295"},
  };
  for (const auto& [text, message] : cases) {
    const Status status = Topology::parse(text).status();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << text;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.to_string();
  }
}

TEST(Topology, LevelsNest) {
  const Level island{"island", 8, 400'000'000'000, 1'000};
  const Level leaf{"leaf", 256, 50'000'000'000, 5'000};
  EXPECT_EQ(Topology::create({}, {island, leaf}).value().levels().size(), 2u);
  const Status swapped = Topology::create({}, {leaf, island}).status();
  EXPECT_TRUE(swapped.is(ErrorKind::kInvalid));
  EXPECT_NE(swapped.message().find("'island' has 8 ranks"), std::string::npos);
  const Status empty = Topology::create({}, {{"island", 0, 1, 1}}).status();
  EXPECT_TRUE(empty.is(ErrorKind::kInvalid));
  const Status cut = Topology::create({}, {{"island", 8, 0, 1}}).status();
  EXPECT_NE(cut.message().find("'island' has no bandwidth"), std::string::npos);
}

TEST(TopologyDeath, ARankOutsideIsADefect) {
  EXPECT_DEATH(static_cast<void>(topology("dp=2").coordinates(Rank(2))), "outside its topology");
  Coordinates c;
  c[Axis::kDp] = 2;
  EXPECT_DEATH(static_cast<void>(topology("dp=2").rank(c)), "outside its topology");
}

}  // namespace
}  // namespace batchloom::model
