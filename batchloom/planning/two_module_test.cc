// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/two_module.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "batchloom/planning/grouped.h"
#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kTwoModuleCapacity = 2'000;

Result<TwoModulePlan> try_both(std::string_view axes, Spread pictures,
                               std::vector<model::SampleMeta> samples) {
  return plan_two_module(picture_costs(), text_costs(), model::Topology::parse(axes).value(),
                         {.capacity_tokens = kTwoModuleCapacity, .pictures = pictures},
                         std::move(samples));
}

RC_GTEST_PROP(TwoModule, IsSoundForAnySamples, ()) {
  const auto dp = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto cp = *rc::gen::inRange<std::uint32_t>(1, 4);
  const std::string axes = fmt::format("dp={} cp={} tp={}", dp, cp, *rc::gen::inRange(1, 3));
  const Lengths lengths = *any_lengths(
      {.ranks = dp, .capacity_tokens = kTwoModuleCapacity, .most_tokens = kTwoModuleCapacity * cp});
  auto samples = with_pictures(samples_of(lengths));
  const auto spread = *rc::gen::element(Spread::kDp, Spread::kWorld);
  const TwoModulePlan both = try_both(axes, spread, samples).value();
  const Status pictures = check_pictures(both.pictures, samples, both.plan.topology);
  RC_ASSERT(pictures.to_string() == Status::ok().to_string());
  RC_ASSERT(both.lower_bound_ns <= both.makespan_ns);
  std::ranges::reverse(samples);
  const TwoModulePlan other = try_both(axes, spread, samples).value();
  RC_ASSERT(other.plan == both.plan);
  RC_ASSERT(other.pictures == both.pictures);
}

/// Of each sample, the place along dp of the ranks that hold it.
std::map<std::uint32_t, std::uint32_t> groups_of(const model::StepPlan& plan) {
  std::map<std::uint32_t, std::uint32_t> groups;
  for (model::HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    for (const model::MicroBatch& micro_batch : plan.micro_batches_of(rank)) {
      for (const model::Piece& piece : plan.pieces_of(micro_batch)) {
        groups[piece.sample.value] = plan.topology.coordinates(rank)[model::Axis::kDp];
      }
    }
  }
  return groups;
}

TEST(TwoModule, AlongDpPicturesStayWithTheirSamples) {
  const TwoModulePlan both =
      try_both("dp=4 cp=2", Spread::kDp, vision_samples(5, 200, 3'000)).value();
  const auto groups = groups_of(both.plan);
  for (const PlacedPicture& picture : both.pictures.pictures) {
    EXPECT_EQ(picture.bucket, groups.at(picture.sample.value));
  }
}

TEST(TwoModule, BalancesTheSumWhereOneModuleAloneWouldNot) {
  // Half of the samples are pictures and hardly any text, half are text alone.
  std::vector<model::SampleMeta> samples = vision_samples(9, 64, 10);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].image_patches.clear();
    samples[i].tokens = i % 2 == 0 ? 20 : 1'900;
    if (i % 2 == 0) samples[i].image_patches = {static_cast<std::uint32_t>(1'000 + 50 * i)};
  }
  const TwoModulePlan both = try_both("dp=8", Spread::kDp, samples).value();
  const double gap =
      static_cast<double>(both.makespan_ns) / static_cast<double>(both.lower_bound_ns);
  EXPECT_LT(gap, 1.05);
  const auto text_alone =
      plan_grouped(text_costs(), both.plan.topology,
                   {.balance = GroupedBalance::kTwoLevel, .capacity_tokens = kTwoModuleCapacity},
                   plan_samples_of(samples))
          .value();
  const auto groups = groups_of(text_alone);
  std::vector<std::uint64_t> encoding(8, 0);
  for (const PlacedPicture& picture : both.pictures.pictures) {
    encoding[groups.at(picture.sample.value)] += picture.cost_ns;
  }
  EXPECT_LT(both.pictures.makespan_ns, *std::ranges::max_element(encoding));
}

TEST(TwoModule, ExchangedEmbeddingsUseAllRanks) {
  const auto samples = vision_samples(11, 400, 1'000);
  const TwoModulePlan apart = try_both("dp=4 tp=4", Spread::kWorld, samples).value();
  const TwoModulePlan together = try_both("dp=4 tp=4", Spread::kDp, samples).value();
  EXPECT_EQ(apart.pictures.buckets, 16U);
  EXPECT_LT(apart.pictures.imbalance(), 1.02);
  EXPECT_LT(3 * apart.pictures.makespan_ns, together.pictures.makespan_ns);
  EXPECT_EQ(apart.makespan_ns, apart.pictures.makespan_ns + apart.plan.makespan_ns);
}

TEST(TwoModule, RefusesWhatItCannotLayOut) {
  EXPECT_THAT(try_both("dp=4", Spread::kHdp, {}).status().to_string(),
              HasSubstr("invalid: two_module with pictures along hdp"));
  EXPECT_THAT(try_both("dp=4", Spread::kWorld, vision_samples(1, 30, 4 * kTwoModuleCapacity))
                  .status()
                  .to_string(),
              HasSubstr("does not fit: a group of 1 ranks"));
  auto samples = vision_samples(1, 3, 10);
  samples[1] = samples[0];
  EXPECT_EQ(try_both("dp=4", Spread::kDp, samples).status().to_string(),
            "invalid: sample 0:0:0:0 is given twice");
}

}  // namespace
}  // namespace batchloom::planning
