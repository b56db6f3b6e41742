// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/step_lengths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/planner.h"
#include "batchloom/planning/record_table.h"
#include "batchloom/simulator/length_distributions.h"

namespace batchloom::simulator {
namespace {

using Lengths = std::vector<std::uint32_t>;

TEST(StepLengths, NamedStepsAreDrawnWithConsecutiveSeeds) {
  const StepLengths wanted = {
      .context_tokens = 65'536, .step_tokens = 1 << 20, .steps = 3, .seed = 7};
  const LengthsByStep steps = lengths_of_steps("github-like", wanted).value();
  ASSERT_EQ(steps.size(), 3u);
  for (std::uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(steps[step], draw_lengths({.distribution = "github-like",
                                         .context_tokens = 65'536,
                                         .total_tokens = 1 << 20,
                                         .seed = 7 + step})
                               .value());
  }
  EXPECT_TRUE(lengths_of_steps("nobody", wanted).is(ErrorKind::kInvalid));
}

TEST(StepLengths, RealLengthsAreTakenOnceBeforeAnyIsTakenAgain) {
  const StepLengths wanted = {.context_tokens = 100, .step_tokens = 10 + 20 + 30, .steps = 3};
  const LengthsByStep steps = lengths_of_steps(Lengths{10, 101, 20, 30}, wanted).value();
  for (Lengths step : steps) {
    std::ranges::sort(step);
    EXPECT_EQ(step, (Lengths{10, 20, 30})) << "and 101 never";
  }
  EXPECT_EQ(steps, lengths_of_steps(Lengths{10, 101, 20, 30}, wanted).value());
}

TEST(StepLengths, WhatCannotBeDrawnIsNamed) {
  const auto none = lengths_of_steps(Lengths{5, 6}, {.context_tokens = 4, .step_tokens = 10});
  ASSERT_TRUE(none.is(ErrorKind::kInvalid));
  EXPECT_EQ(none.status().message(), "none of the 2 samples fits into a context of 4 tokens");
  EXPECT_TRUE(
      lengths_of_steps(Lengths{5}, {.context_tokens = 5, .step_tokens = kTotalTokensMax + 1})
          .is(ErrorKind::kInvalid));
}

/// Of two sources with one weight each, the second of which ends.
planning::GraphSpec graph_with(planning::Exhausted exhausted) {
  planning::GraphSpec graph;
  graph.mix = planning::MixSpec{.seed = 3, .units_per_step = 100, .max_sample_tokens = 40};
  for (const char* name : {"a", "b"}) {
    graph.mix->sources.push_back({.name = name,
                                  .weight = planning::Schedule(planning::Weight(1'000'000'000)),
                                  .exhausted = exhausted});
  }
  graph.selections.push_back({.distribute = planning::Spread::kDp,
                              .cost = planning::builtin_cost_model("h200-llama7b").value(),
                              .balance = planning::Balance::kTwoLevel});
  return graph;
}

TEST(StepLengths, APipelinesStepsAreThoseThatItsMixtureDraws) {
  planning::RecordTable table =
      planning::RecordTable::create({{"a", {{.tokens = 100}, {.tokens = 7}, {.tokens = 30}}},
                                     {"b", {{.tokens = 25}, {.tokens = 25}}}})
          .value();
  const planning::GraphSpec graph = graph_with(planning::Exhausted::kRepeat);
  const LengthsByStep steps = lengths_of_steps(graph, table, 5).value();
  ASSERT_EQ(steps.size(), 5u);
  planning::PlannerState state = planning::first_state(graph, table).value();
  for (const Lengths& lengths : steps) {
    const auto drawn = planning::draw_step(graph, state, table).value();
    Lengths expected;
    for (const model::SampleMeta& member : drawn->members) expected.push_back(member.tokens);
    EXPECT_EQ(lengths, expected);
    EXPECT_LE(std::reduce(lengths.begin(), lengths.end()), 100u);
    EXPECT_LE(std::ranges::max(lengths), 40u) << "records are cut as the pipeline cuts them";
    state = drawn->next;
  }
}

TEST(StepLengths, APipelineEndsWhereItsSourcesEnd) {
  planning::RecordTable table =
      planning::RecordTable::create(
          {{"a", {{.tokens = 90}, {.tokens = 90}}}, {"b", {{.tokens = 20}}}})
          .value();
  const planning::GraphSpec graph = graph_with(planning::Exhausted::kDrop);
  const LengthsByStep steps = lengths_of_steps(graph, table, 100).value();
  EXPECT_LT(steps.size(), 100u);
  std::uint64_t tokens = 0;
  for (const Lengths& step : steps) tokens += std::reduce(step.begin(), step.end());
  EXPECT_EQ(tokens, 200u);
  planning::RecordTable empty =
      planning::RecordTable::create({{"a", {{.tokens = 0}}}, {"b", {}}}).value();
  EXPECT_FALSE(lengths_of_steps(graph, empty, 1).is_ok());
}

RC_GTEST_PROP(StepLengths, StepsHaveTheirTokensAndNoLongerSample, (std::uint64_t seed)) {
  const auto lengths =
      *rc::gen::nonEmpty(rc::gen::container<Lengths>(rc::gen::inRange<std::uint32_t>(1, 1000)));
  const StepLengths wanted = {.context_tokens = *rc::gen::inRange<std::uint32_t>(1, 1000),
                              .step_tokens = *rc::gen::inRange<std::uint64_t>(1, 20'000),
                              .steps = 3,
                              .seed = seed};
  const auto steps = lengths_of_steps(lengths, wanted);
  const bool fits = std::ranges::min(lengths) <= wanted.context_tokens;
  RC_ASSERT(steps.is_ok() == fits);
  if (!fits) return;
  for (const Lengths& step : steps.value()) {
    RC_ASSERT(std::reduce(step.begin(), step.end(), std::uint64_t{0}) == wanted.step_tokens);
    RC_ASSERT(std::ranges::max(step) <= wanted.context_tokens);
    RC_ASSERT(std::ranges::min(step) >= 1u);
  }
}

}  // namespace
}  // namespace batchloom::simulator
