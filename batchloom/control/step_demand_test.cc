// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/step_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/planning/record_table.h"

namespace batchloom::control {
namespace {

using planning::Ramp;
using planning::Schedule;
using planning::Weight;
using testing::DoubleNear;
using testing::ElementsAre;

planning::MixSpec mix_of(planning::StepUnit unit, const std::vector<Schedule>& weights) {
  planning::MixSpec mix{.unit = unit, .units_per_step = 1'000, .max_sample_tokens = 100};
  for (const Schedule& weight : weights) mix.sources.push_back({.name = "s", .weight = weight});
  return mix;
}

Schedule ramp(std::uint64_t from, std::uint64_t to, std::uint64_t step) {
  return Schedule::create(
             {{model::Step(0), Weight(from)}, {model::Step(step), Weight(to), Ramp::kLinear}})
      .value();
}

/// Of a sample with so many tokens.
SampleCost cost_of(double tokens, double sample_s) {
  return {.samples = 64, .thread_s = sample_s, .cpu_s = sample_s, .tokens = tokens, .bytes = 10};
}

auto near(double value) {
  return DoubleNear(value, 1e-6);
}

TEST(StepDemand, SharesOfSamplesAreSamples) {
  const auto mix = mix_of(planning::StepUnit::kSamples, {Schedule(Weight(3)), Schedule(Weight(1))});
  EXPECT_THAT(samples_expected(mix, {}, {}, {}), ElementsAre(near(750), near(250)));
}

TEST(StepDemand, SharesOfTokensAreDividedByWhatASampleHas) {
  const auto mix = mix_of(planning::StepUnit::kTokens,
                          {Schedule(Weight(2)), Schedule(Weight(1)), Schedule(Weight(1))});
  const std::vector<SampleCost> costs = {cost_of(50, 1), cost_of(10, 1), {}};
  EXPECT_THAT(samples_expected(mix, costs, {}, {}),
              ElementsAre(near(500.0 / 50), near(250.0 / 10), near(250.0 / 30)))
      << "nobody knows the third: as long as the others' in the mean";
}

TEST(StepDemand, TheMostOfAllStepsToComeCounts) {
  const auto mix = mix_of(planning::StepUnit::kSamples, {ramp(990, 400, 500), ramp(10, 600, 500)});
  EXPECT_THAT(samples_expected(mix, {}, {}, {}), ElementsAre(near(990), near(10)));
  EXPECT_THAT(samples_expected(mix, {}, {}, {.first = model::Step(0), .count = 101}),
              ElementsAre(near(990), near(10 + 0.2 * 590)));
  EXPECT_THAT(samples_expected(mix, {}, {}, {.first = model::Step(450), .count = 1'000}),
              ElementsAre(near(400 + 0.1 * 590), near(600)));
}

TEST(StepDemand, WhatIsGoneOrHasAnotherWeightCountsSo) {
  const auto mix = mix_of(planning::StepUnit::kSamples,
                          {Schedule(Weight(1)), Schedule(Weight(1)), Schedule(Weight(1))});
  std::vector<planning::SourceState> states(3);
  states[0].gone = true;
  states[2].set_weight = Weight(3);
  EXPECT_THAT(samples_expected(mix, {}, states, {}), ElementsAre(0, near(250), near(750)));
  for (planning::SourceState& state : states) state.gone = true;
  EXPECT_THAT(samples_expected(mix, {}, states, {}), ElementsAre(0, 0, 0));
}

TEST(StepDemand, ASourceWithoutRecordsTakesNoPart) {
  const auto mix = mix_of(planning::StepUnit::kSamples, {Schedule(Weight(3)), Schedule(Weight(1))});
  const auto table =
      planning::RecordTable::create({{"full", {{.tokens = 5}}}, {"empty", {}}}).value();
  EXPECT_THAT(samples_expected(mix_of_records(mix, table), {}, {}, {}),
              ElementsAre(near(1'000), 0));
}

TEST(StepDemand, WhatNobodyMeasuredCostsAsTheDearestDoes) {
  const std::vector<SampleCost> costs = {cost_of(50, 0.1), cost_of(10, 0.05), {}};
  const std::vector<double> samples = {1, 2, 3};
  const auto demands = demands_of(samples, costs);
  ASSERT_EQ(demands.size(), 3U);
  EXPECT_DOUBLE_EQ(demands[0].thread_s, 0.1);
  EXPECT_DOUBLE_EQ(demands[1].samples, 2);
  EXPECT_DOUBLE_EQ(demands[2].thread_s, 0.05 * 30 / 10) << "30 tokens at 5 ms each";
  EXPECT_DOUBLE_EQ(demands_of(samples, {})[2].thread_s, 0);
}

}  // namespace
}  // namespace batchloom::control
