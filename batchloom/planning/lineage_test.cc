// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/lineage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::Rank;
using model::SampleId;
using testing::ElementsAre;
using testing::HasSubstr;

/// A step with its places and pictures, which a Lineage borrows.
struct LaidOut {
  model::StepPlan plan;
  PlaceTree places;
  PictureAssignment pictures;

  Lineage lineage() const { return Lineage::create(plan, places, &pictures).value(); }
};

LaidOut laid_out(std::string_view axes, const std::vector<model::SampleMeta>& samples,
                 Spread spread = Spread::kWorld) {
  const model::Topology topology = model::Topology::parse(axes).value();
  const HdpPlanner planner =
      HdpPlanner::create(text_costs(), topology,
                         {.capacity_tokens = 1'000, .min_share_tokens = 100, .offload = false})
          .value();
  return {planner.plan(plan_samples_of(samples)).value(),
          PlaceTree::create({.topology = topology, .broadcast = {model::Axis::kTp}}).value(),
          assign_pictures(picture_costs(), topology, spread, Balance::kLpt, samples).value()};
}

RC_GTEST_PROP(Lineage, LeadsFromEverySampleToItsRanksAndBack, (std::uint64_t seed)) {
  const std::string axes = fmt::format("dp={} cp={} tp={}", *rc::gen::inRange(2, 5),
                                       *rc::gen::inRange(1, 3), *rc::gen::inRange(1, 3));
  const auto spread = *rc::gen::element(Spread::kDp, Spread::kHdp, Spread::kWorld);
  const auto samples = vision_samples(seed, *rc::gen::inRange<std::size_t>(0, 30), 1'900);
  const LaidOut step = laid_out(axes, samples, spread);
  const Lineage lineage = step.lineage();
  std::map<SampleId, std::set<std::uint32_t>> trained;  // By way of the ranks.
  std::map<SampleId, std::set<std::uint32_t>> encoders;
  for (Rank rank; rank.value < step.plan.topology.world_size(); ++rank) {
    const RankLineage of_rank = lineage.of_rank(rank).value();
    RC_ASSERT(of_rank.feeder == step.places.feeder(rank));
    for (const RankMicroBatch& micro_batch : of_rank.micro_batches) {
      for (const SampleId& id : micro_batch.samples) trained[id].insert(rank.value);
    }
    for (const PictureOf& picture : of_rank.pictures) encoders[picture.sample].insert(rank.value);
  }
  for (const model::SampleMeta& sample : samples) {
    const SampleLineage of_sample = lineage.of_sample(sample.id).value();
    std::set<std::uint32_t> ranks;
    std::vector<std::uint32_t> tokens(sample.tokens, 0);
    for (const SampleHolding& holding : of_sample.holdings) {
      for (const Rank rank : holding.ranks) ranks.insert(rank.value);
      for (const Rank rank : holding.fetchers) RC_ASSERT(step.places.feeder(rank) == rank);
      RC_ASSERT(!holding.fetchers.empty());
      for (const model::Piece& piece : holding.pieces) {
        for (std::uint32_t token = piece.lo; token < piece.hi; ++token) ++tokens[token];
      }
    }
    RC_ASSERT(std::ranges::count(tokens, 1U) == std::ptrdiff_t{sample.tokens});
    RC_ASSERT(ranks == trained.at(sample.id));
    std::set<std::uint32_t> encoding;
    for (const PicturePlace& picture : of_sample.pictures) {
      for (const Rank rank : picture.ranks) encoding.insert(rank.value);
    }
    RC_ASSERT(of_sample.pictures.size() == sample.image_patches.size());
    RC_ASSERT(encoding == encoders[sample.id]);
  }
}

TEST(Lineage, OfARecordHasAllOfItsPartsAndPasses) {
  std::vector<model::SampleMeta> samples = vision_samples(2, 5, 50);
  samples[1].id.index = model::RecordIndex(0);
  samples[1].id.part = model::PartIndex(1);
  samples[2].id.index = model::RecordIndex(0);
  samples[2].id.epoch = model::Epoch(3);
  samples[4].id.source = model::SourceId(1);
  samples[4].id.index = model::RecordIndex(0);
  const LaidOut step = laid_out("dp=2", samples);
  const auto found = step.lineage().of_record(model::SourceId(0), model::RecordIndex(0));
  std::vector<std::string> ids;
  for (const SampleLineage& sample : found) ids.push_back(to_string(sample.sample.id));
  EXPECT_THAT(ids, ElementsAre("0:0:0:0", "0:0:0:1", "0:3:0:0"));
  EXPECT_TRUE(step.lineage().of_record(model::SourceId(0), model::RecordIndex(1)).empty());
  EXPECT_TRUE(step.lineage().of_record(model::SourceId(9), model::RecordIndex(0)).empty());
}

TEST(Lineage, NamesTheMicroBatchTheTaskAndWhoFetches) {
  std::vector<model::SampleMeta> samples(1);
  samples[0].tokens = 2'000;
  const LaidOut step = laid_out("dp=2 tp=2", samples);
  const SampleLineage giant = step.lineage().of_sample(samples[0].id).value();
  ASSERT_EQ(giant.holdings.size(), 2U);
  EXPECT_EQ(giant.holdings[0].task, giant.holdings[1].task);
  EXPECT_EQ(giant.holdings[1].slice, HdpRank(1));
  EXPECT_EQ(giant.holdings[1].micro_batch, 0U);
  EXPECT_THAT(giant.holdings[1].ranks, ElementsAre(Rank(2), Rank(3)));
  EXPECT_THAT(giant.holdings[1].fetchers, ElementsAre(Rank(2)));
  EXPECT_THAT(giant.holdings[0].pieces,
              ElementsAre(model::Piece{model::SampleIndex(0), 0, 500},
                          model::Piece{model::SampleIndex(0), 1'500, 2'000}));
  const RankLineage fed = step.lineage().of_rank(Rank(3)).value();
  EXPECT_EQ(fed.feeder, Rank(2));
  EXPECT_TRUE(fed.needs.any());
}

TEST(Lineage, RefusesWhatDoesNotBelongTogether) {
  const auto samples = vision_samples(2, 20, 50);
  LaidOut step = laid_out("dp=4", samples);
  EXPECT_EQ(step.lineage().of_rank(Rank(4)).status().to_string(),
            "invalid: there is no rank 4 in dp=4, which has 4");
  SampleId unknown = samples[3].id;
  unknown.part = model::PartIndex(1);
  EXPECT_EQ(step.lineage().of_sample(unknown).status().to_string(),
            "not_found: the step has no sample 0:0:3:1 among its 20");
  const auto refusal = [](const LaidOut& broken) {
    return Lineage::create(broken.plan, broken.places, &broken.pictures).status().to_string();
  };
  LaidOut other = step;
  other.places = laid_out("dp=2", samples).places;
  EXPECT_THAT(refusal(other), HasSubstr("the plan is of dp=4, the place tree of dp=2"));
  other = step;
  other.pictures.pictures[0].bucket = 4;
  EXPECT_THAT(refusal(other), HasSubstr("in bucket 4 of 4"));
  other = step;
  other.pictures.buckets = 3;
  EXPECT_THAT(refusal(other), HasSubstr("pictures on 3 buckets"));
  other = step;
  other.plan.samples[1].id = other.plan.samples[0].id;
  EXPECT_THAT(refusal(other), HasSubstr("is in the plan twice"));
  other = step;
  other.plan.ranks.pop_back();
  EXPECT_THAT(refusal(other), HasSubstr("invalid: "));
}

}  // namespace
}  // namespace batchloom::planning
