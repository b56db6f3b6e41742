// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/place_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace batchloom::planning {
namespace {

using model::Axis;
using model::AxisExtent;
using model::HdpRank;
using model::Rank;
using model::Topology;

constexpr TensorNeeds kFirst{.tokens = true, .positions = true};
constexpr TensorNeeds kLast{.labels = true, .loss_mask = true};
constexpr TensorNeeds kEverything{true, true, true, true};

PlaceTree tree(std::string_view axes, std::vector<Axis> broadcast = {Axis::kTp},
               std::uint32_t ep = 1, bool mtp = false) {
  return PlaceTree::create({.topology = Topology::parse(axes).value(),
                            .broadcast = std::move(broadcast),
                            .ep = ep,
                            .mtp = mtp})
      .value();
}

/// Calls `check` with every order of the axes, every extent up to 3 along pp and up to 2 along the
/// others, every set of broadcast axes, with MTP and without.
void for_every_small_tree(const std::function<void(const PlaceTree&, const std::string&)>& check) {
  const std::vector<std::vector<Axis>> broadcasts = {
      {}, {Axis::kTp}, {Axis::kPp}, {Axis::kPp, Axis::kTp}};
  for (std::uint32_t extents = 0; extents < 24; ++extents) {
    std::vector<AxisExtent> axes = {{Axis::kPp, 1 + extents / 8},
                                    {Axis::kDp, 1 + extents / 4 % 2},
                                    {Axis::kCp, 1 + extents / 2 % 2},
                                    {Axis::kTp, 1 + extents % 2}};
    do {
      for (std::uint32_t i = 0; i < 8; ++i) {
        const PlaceTree tree = PlaceTree::create({.topology = Topology::create(axes).value(),
                                                  .broadcast = broadcasts[i / 2],
                                                  .mtp = i % 2 == 1})
                                   .value();
        check(tree, to_string(tree.topology()) + " case " + std::to_string(i));
      }
    } while (std::ranges::next_permutation(axes, {}, &AxisExtent::axis).found);
  }
}

std::vector<Rank> all_ranks(const PlaceTree& tree) {
  std::vector<Rank> ranks;
  for (Rank rank; rank.value < tree.topology().world_size(); ++rank) ranks.push_back(rank);
  return ranks;
}

TEST(PlaceTree, TwoOfThirtySixRanksFetch) {
  const PlaceTree t = tree("pp=9 dp=8 cp=2 tp=4");
  for (HdpRank slice; slice.value < 16; ++slice) {
    EXPECT_EQ(t.slice(slice).size(), 36u);
    const std::vector<Rank> fetchers = t.fetchers(slice);
    ASSERT_EQ(fetchers.size(), 2u);
    EXPECT_EQ(fetchers[0], Rank(slice.value * 4)) << "first stage, tp 0";
    EXPECT_EQ(fetchers[1], Rank(8 * 64 + slice.value * 4)) << "last stage, tp 0";
    EXPECT_EQ(t.fetches(fetchers[0]), kFirst);
    EXPECT_EQ(t.fetches(fetchers[1]), kLast);
  }
}

TEST(PlaceTree, BroadcastDecidesHowManyFetch) {
  const HdpRank slice(3);
  EXPECT_EQ(tree("pp=9 dp=8 cp=2 tp=4", {}).fetchers(slice).size(), 8u);
  EXPECT_EQ(tree("pp=9 dp=8 cp=2 tp=4", {Axis::kPp}).fetchers(slice).size(), 4u);
  const PlaceTree both = tree("pp=9 dp=8 cp=2 tp=4", {Axis::kTp, Axis::kPp});
  ASSERT_EQ(both.fetchers(slice), std::vector{Rank(12)});
  EXPECT_EQ(both.fetches(Rank(12)), kEverything) << "for itself and for the last stage";
  EXPECT_EQ(both.fed_by(Rank(12)), both.slice(slice));
}

TEST(PlaceTree, AStageAloneNeedsAll) {
  EXPECT_EQ(tree("dp=2 tp=2").needs(Rank(3)), kEverything);
  EXPECT_EQ(tree("dp=2 tp=2").fetches(Rank(3)), TensorNeeds{}) << "rank 2 broadcasts to it";
  EXPECT_EQ(tree("dp=2 tp=2").fetches(Rank(2)), kEverything);
}

TEST(PlaceTree, PredictingAheadEmbedsOnTheLastStage) {
  const PlaceTree t = tree("pp=3", {}, 1, true);
  EXPECT_EQ(t.needs(Rank(0)), kFirst);
  EXPECT_EQ(t.needs(Rank(1)), TensorNeeds{});
  EXPECT_EQ(t.needs(Rank(2)), kEverything);
}

TEST(PlaceTree, NeedsFollowTheStage) {
  for_every_small_tree([](const PlaceTree& tree, const std::string& name) {
    const std::uint32_t stages = tree.topology().extent(Axis::kPp);
    for (const Rank rank : all_ranks(tree)) {
      const std::uint32_t stage = tree.topology().coordinates(rank)[Axis::kPp];
      TensorNeeds expected;
      if (stage == 0) expected = kFirst;
      if (stage == stages - 1) expected = tree.options().mtp ? kEverything : kLast;
      if (stages == 1) expected = kEverything;
      EXPECT_EQ(tree.needs(rank), expected) << name << " rank " << rank.value;
    }
  });
}

/// Everybody gets what it needs from one rank of its own slice, which reads no more than that.
TEST(PlaceTree, FetchersFeedTheirSlices) {
  for_every_small_tree([](const PlaceTree& tree, const std::string& name) {
    std::map<Rank, TensorNeeds> wanted;
    std::map<Rank, std::vector<Rank>> fed;
    for (const Rank rank : all_ranks(tree)) {
      const Rank feeder = tree.feeder(rank);
      wanted[feeder] |= tree.needs(rank);
      fed[feeder].push_back(rank);
      ASSERT_EQ(tree.feeder(feeder), feeder) << name;
      ASSERT_EQ(tree.topology().hdp_rank(feeder), tree.topology().hdp_rank(rank)) << name;
    }
    for (const Rank rank : all_ranks(tree)) {
      ASSERT_EQ(tree.fetches(rank), wanted[rank]) << name << " rank " << rank.value;
      ASSERT_EQ(tree.fed_by(rank), fed[rank]) << name << " rank " << rank.value;
    }
  });
}

/// A broadcast goes along its axes only, and from their first ranks.
TEST(PlaceTree, FeedersStandAtZeroAlongTheBroadcast) {
  for (const std::string axes : {"pp=3 dp=2 cp=2 tp=2", "tp=2 cp=2 pp=3 dp=2", "cp=2 tp=2 dp=2"}) {
    for (const bool along_tp : {false, true}) {
      for (const bool along_pp : {false, true}) {
        std::vector<Axis> broadcast;
        if (along_tp) broadcast.push_back(Axis::kTp);
        if (along_pp) broadcast.push_back(Axis::kPp);
        const PlaceTree t = tree(axes, broadcast);
        for (const Rank rank : all_ranks(t)) {
          model::Coordinates place = t.topology().coordinates(rank);
          if (along_tp) place[Axis::kTp] = 0;
          if (along_pp) place[Axis::kPp] = 0;
          EXPECT_EQ(t.topology().coordinates(t.feeder(rank)), place) << axes << " " << rank.value;
        }
      }
    }
  }
}

TEST(PlaceTree, SlicesDivideTheWorldAndAreReadOnce) {
  for_every_small_tree([](const PlaceTree& tree, const std::string& name) {
    std::set<Rank> seen;
    for (HdpRank h; h.value < tree.topology().hdp_size(); ++h) {
      const std::vector<Rank> slice = tree.slice(h);
      ASSERT_TRUE(std::ranges::is_sorted(slice)) << name;
      std::vector<Rank> expected_fetchers;
      for (const Rank rank : slice) {
        ASSERT_EQ(tree.topology().hdp_rank(rank), h) << name;
        ASSERT_TRUE(seen.insert(rank).second) << name;
        if (tree.fetches(rank).any()) expected_fetchers.push_back(rank);
      }
      ASSERT_EQ(tree.fetchers(h), expected_fetchers) << name;
      ASSERT_FALSE(expected_fetchers.empty()) << name;
    }
    ASSERT_EQ(seen.size(), tree.topology().world_size()) << name;
  });
}

TEST(PlaceTree, SharingIsByDpThenCp) {
  for_every_small_tree([](const PlaceTree& tree, const std::string& name) {
    const Topology& topology = tree.topology();
    for (const Rank a : all_ranks(tree)) {
      for (const Rank b : all_ranks(tree)) {
        Sharing expected = Sharing::kSameTokens;
        if (topology.hdp_rank(a) != topology.hdp_rank(b)) expected = Sharing::kOtherStretches;
        if (topology.coordinates(a)[Axis::kDp] != topology.coordinates(b)[Axis::kDp]) {
          expected = Sharing::kOtherSamples;
        }
        ASSERT_EQ(tree.sharing(a, b), expected) << name << " " << a.value << " " << b.value;
      }
    }
  });
}

TEST(PlaceTree, BucketsAreEvenAndShared) {
  for_every_small_tree([](const PlaceTree& tree, const std::string& name) {
    for (const Spread spread : {Spread::kDp, Spread::kHdp, Spread::kWorld}) {
      std::map<std::uint32_t, std::vector<Rank>> buckets;
      for (const Rank rank : all_ranks(tree)) buckets[tree.bucket(rank, spread)].push_back(rank);
      ASSERT_EQ(buckets.size(), tree.bucket_count(spread)) << name;
      ASSERT_EQ(buckets.rbegin()->first + 1, tree.bucket_count(spread)) << name;
      for (const auto& [bucket, ranks] : buckets) {
        ASSERT_EQ(ranks.size() * buckets.size(), tree.topology().world_size()) << name;
        for (const Rank rank : ranks) {
          const Sharing sharing = tree.sharing(ranks.front(), rank);
          const bool same_samples = sharing != Sharing::kOtherSamples;
          const bool same_tokens = sharing == Sharing::kSameTokens;
          ASSERT_TRUE(same_samples || spread != Spread::kDp) << name;
          ASSERT_TRUE(same_tokens || spread != Spread::kHdp) << name;
        }
      }
    }
  });
}

TEST(PlaceTree, ExpertGroupsAreNeighboursAlongDp) {
  EXPECT_EQ(tree("dp=4 tp=2", {Axis::kTp}, 2).expert_group(Rank(7)),
            (std::vector{Rank(5), Rank(7)}));
  for (const std::string axes : {"pp=2 dp=6 cp=2 tp=2", "dp=6 tp=2 pp=2", "tp=2 dp=6"}) {
    const PlaceTree without = tree(axes);
    for (const std::uint32_t ep : {1u, 2u, 3u, 6u}) {
      const PlaceTree t = tree(axes, {Axis::kTp}, ep);
      for (const Rank rank : all_ranks(t)) {
        const std::vector<Rank> group = t.expert_group(rank);
        ASSERT_EQ(group.size(), ep);
        ASSERT_TRUE(std::ranges::is_sorted(group));
        ASSERT_TRUE(std::ranges::binary_search(group, rank));
        ASSERT_EQ(t.fetches(rank), without.fetches(rank)) << "experts do not change the data";
        model::Coordinates place = t.topology().coordinates(rank);
        for (const Rank member : group) {
          ASSERT_EQ(t.expert_group(member), group);
          place[Axis::kDp] = t.topology().coordinates(member)[Axis::kDp];
          ASSERT_EQ(place, t.topology().coordinates(member)) << "only dp differs";
          ASSERT_EQ(place[Axis::kDp] / ep, t.topology().coordinates(rank)[Axis::kDp] / ep);
        }
      }
    }
  }
}

TEST(PlaceTree, WhatItRefusesAndSays) {
  struct Case {
    std::vector<Axis> broadcast;
    std::uint32_t ep;
    std::string message;
  };
  const Case cases[] = {
      {{Axis::kDp}, 1, "a broadcast along dp, where every rank needs other tokens"},
      {{Axis::kTp, Axis::kCp}, 1, "a broadcast along cp"},
      {{Axis::kTp, Axis::kPp, Axis::kTp}, 1, "the broadcast axis tp is named twice"},
      {{}, 0, "an expert group of ep=0 ranks along dp=6"},
      {{}, 4, "an expert group of ep=4 ranks along dp=6, which it must divide"},
  };
  for (const Case& wrong : cases) {
    const Status status = PlaceTree::create({.topology = Topology::parse("dp=6 tp=2").value(),
                                             .broadcast = wrong.broadcast,
                                             .ep = wrong.ep})
                              .status();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << wrong.message;
    EXPECT_NE(status.message().find(wrong.message), std::string::npos) << status.to_string();
  }
}

TEST(PlaceTreeDeath, ARankOutsideIsADefect) {
  EXPECT_DEATH(static_cast<void>(tree("dp=2").needs(Rank(2))), "outside its topology");
  EXPECT_DEATH(static_cast<void>(tree("dp=2").slice(HdpRank(2))), "outside its topology");
}

}  // namespace
}  // namespace batchloom::planning
