// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pictures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

model::Topology ranks_of(std::string_view axes) {
  return model::Topology::parse(axes).value();
}

PictureAssignment assigned(const std::vector<model::SampleMeta>& samples, std::string_view axes,
                           Balance balance, Spread spread = Spread::kWorld) {
  return assign_pictures(picture_costs(), ranks_of(axes), spread, balance, samples).value();
}

RC_GTEST_PROP(Pictures, EveryOneIsEncodedOnceWhateverTheBalance, (std::uint64_t seed)) {
  const auto balance = *rc::gen::element(Balance::kNone, Balance::kLpt, Balance::kKarmarkarKarp,
                                         Balance::kTwoModule);
  const auto spread = *rc::gen::element(Spread::kDp, Spread::kHdp, Spread::kWorld);
  const std::string axes =
      fmt::format("pp={} dp={} cp={} tp={}", *rc::gen::inRange(1, 3), *rc::gen::inRange(1, 6),
                  *rc::gen::inRange(1, 3), *rc::gen::inRange(1, 3));
  const auto samples = vision_samples(seed, *rc::gen::inRange<std::size_t>(0, 80), 2'000);
  const PictureAssignment assignment = assigned(samples, axes, balance, spread);
  const Status checked = check_pictures(assignment, samples, ranks_of(axes));
  RC_ASSERT(checked.to_string() == Status::ok().to_string());
  RC_ASSERT(assignment.makespan_ns <= assignment.dealt_makespan_ns);
  RC_ASSERT(assignment.imbalance() <= assignment.imbalance_before());
  RC_ASSERT(assignment == assigned(samples, axes, balance, spread));
}

TEST(Pictures, OfAVisionStepAreEvenlySpread) {
  const auto samples = vision_samples(7, 4'000, 2'000);
  const PictureAssignment lpt = assigned(samples, "dp=16 tp=8", Balance::kLpt);
  const PictureAssignment both = assigned(samples, "dp=16 tp=8", Balance::kTwoModule);
  EXPECT_GT(lpt.imbalance_before(), 1.2);
  EXPECT_LT(lpt.imbalance(), 1.05);
  EXPECT_LE(both.makespan_ns, lpt.makespan_ns);
  EXPECT_LT(both.imbalance(), 1.01);
}

TEST(Pictures, CostsAreThoseOfAllLayers) {
  model::SampleMeta sample;
  sample.tokens = 5;
  sample.image_patches = {64, 128};
  const PictureAssignment assignment = assigned({sample}, "dp=2", Balance::kLpt);
  const CostModel costs = picture_costs();
  EXPECT_EQ(assignment.pictures[0].cost_ns, 2 * costs.encoder.time_ns(64));
  EXPECT_EQ(assignment.total_ns, 2 * (costs.encoder.time_ns(64) + costs.encoder.time_ns(128)));
  EXPECT_EQ(assignment.lower_bound_ns, 2 * costs.encoder.time_ns(128));
}

TEST(Pictures, NoneAtAllIsBalanced) {
  const PictureAssignment none = assigned(vision_samples(1, 0, 10), "dp=4", Balance::kTwoModule);
  EXPECT_EQ(none.makespan_ns, 0U);
  EXPECT_EQ(none.imbalance(), 1);
}

TEST(Pictures, WhatCannotBePlacedIsNamed) {
  std::vector<model::SampleMeta> samples = vision_samples(7, 3, 10);
  samples[2].image_patches = {70, 0};
  const auto refusal = [&](const CostModel& costs, Balance balance) {
    return assign_pictures(costs, ranks_of("dp=2"), Spread::kWorld, balance, samples)
        .status()
        .to_string();
  };
  EXPECT_EQ(refusal(picture_costs(), Balance::kLpt),
            "invalid: sample 0:0:2:0, picture 1 has no patches; a picture has some");
  EXPECT_THAT(refusal(picture_costs(), Balance::kHdp), HasSubstr("pictures by hdp"));
  samples[2].image_patches = {70, UINT32_MAX};
  CostModel endless = picture_costs();
  endless.layers = UINT32_MAX;
  EXPECT_THAT(refusal(endless, Balance::kLpt), HasSubstr("64 bits of nanoseconds"));
}

TEST(Pictures, TheCheckFindsEachDamage) {
  const auto samples = vision_samples(3, 40, 100);
  const model::Topology topology = ranks_of("dp=4");
  const auto refusal = [&](auto change) {
    PictureAssignment assignment = assigned(samples, "dp=4", Balance::kLpt);
    change(assignment);
    return check_pictures(assignment, samples, topology).to_string();
  };
  EXPECT_EQ(refusal([](auto&) {}), "ok");
  EXPECT_THAT(refusal([](auto& all) { all.pictures.pop_back(); }), HasSubstr("each is there once"));
  EXPECT_THAT(refusal([](auto& all) { all.pictures[1] = all.pictures[0]; }),
              HasSubstr("each is there once"));
  EXPECT_THAT(refusal([](auto& all) { all.pictures.push_back(all.pictures.back()); }),
              HasSubstr("pictures are placed, of"));
  EXPECT_THAT(refusal([](auto& all) { ++all.pictures[0].patches; }), HasSubstr("patches, not"));
  EXPECT_THAT(refusal([](auto& all) { all.pictures[0].bucket = 4; }),
              HasSubstr("is encoded by bucket 4 of 4"));
  EXPECT_THAT(refusal([](auto& all) { ++all.makespan_ns; }), HasSubstr("in the fullest bucket"));
  EXPECT_THAT(refusal([](auto& all) { all.buckets = 5; }), HasSubstr("dp=4 makes 4 along world"));
}

}  // namespace
}  // namespace batchloom::planning
