// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_graph.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "batchloom/control/pipeline_testing.h"
#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/planner.h"
#include "batchloom/planning/record_table.h"

namespace batchloom::control {
namespace {

using planning::Balance;
using planning::Modality;
using planning::Spread;
using planning::Weight;

PipelineConfig plain_config() {
  return parse_plain(plain_pipeline_text()).value().config;
}

TEST(PipelineGraph, MixesWhatTheFileSays) {
  const planning::GraphSpec graph = graph_of(plain_config());
  ASSERT_TRUE(graph.mix.has_value());
  EXPECT_EQ(graph.mix->seed, 17u);
  EXPECT_EQ(graph.mix->unit, planning::StepUnit::kTokens);
  EXPECT_EQ(graph.mix->units_per_step, 524'288u);
  EXPECT_EQ(graph.mix->max_sample_tokens, 16'384u);
  ASSERT_EQ(graph.mix->sources.size(), 2u);
  EXPECT_EQ(graph.mix->sources[0].name, "docs");
  EXPECT_EQ(graph.mix->sources[0].weight, planning::Schedule(Weight(500'000'000)));
  EXPECT_EQ(graph.mix->sources[1].order, planning::Order::kFile);
  EXPECT_EQ(graph.mix->sources[1].exhausted, planning::Exhausted::kRepeat);
  EXPECT_EQ(graph.mix->sources[1].epochs, 3u);
}

TEST(PipelineGraph, LaysOutAsTheStrategySays) {
  const std::map<Balance, Spread> spreads = {
      {Balance::kNone, Spread::kDp},          {Balance::kLpt, Spread::kDp},
      {Balance::kKarmarkarKarp, Spread::kDp}, {Balance::kTwoLevel, Spread::kDp},
      {Balance::kTwoModule, Spread::kDp},     {Balance::kHdp, Spread::kHdp}};
  EXPECT_EQ(spreads.size(), planning::balance_names().size());
  for (const auto& [strategy, spread] : spreads) {
    PipelineConfig config = plain_config();
    config.balance.strategy = strategy;
    config.balance.min_share_tokens = 77;
    config.balance.offload = false;
    config.balance.costs.encoder = config.balance.costs.linear;
    const planning::GraphSpec graph = graph_of(config);
    EXPECT_TRUE(find_faults(graph).empty()) << to_string(strategy);
    EXPECT_TRUE(find_faults_on(config.topology.axes, graph).empty()) << to_string(strategy);
    const planning::SelectionSpec& text = *graph.find(Modality::kText);
    EXPECT_EQ(text.distribute, spread);
    EXPECT_EQ(text.balance, strategy);
    EXPECT_EQ(text.cost, config.balance.costs);
    EXPECT_EQ(text.options.capacity_tokens, 8'192u);
    EXPECT_EQ(text.options.min_share_tokens, 77u);
    EXPECT_FALSE(text.options.offload);
    EXPECT_EQ(graph.find(Modality::kImage) != nullptr, strategy == Balance::kTwoModule);
  }
}

TEST(PipelineGraph, ASourceOutsideTheSplitKeepsItsPlaceAndWeighsNothing) {
  PipelineConfig config = plain_config();
  config.run.split = "valid";
  const planning::GraphSpec graph = graph_of(config);
  ASSERT_EQ(graph.mix->sources.size(), 2u);
  EXPECT_EQ(graph.mix->sources[1].name, "code");
  EXPECT_EQ(graph.mix->sources[1].weight, planning::Schedule());
  EXPECT_TRUE(find_faults(graph).empty());
  const planning::MixtureConfig mixture = mixture_of(config, 10);
  EXPECT_EQ(mixture.sources[0].records, 10u);
  EXPECT_EQ(mixture.sources[1].records, 0u);
  EXPECT_TRUE(check_config(mixture).is_ok());
  config.sources[0].split = {{"train", 1}, {"valid", 0}};
  EXPECT_FALSE(takes_part(config.sources[0], config.run));
}

/// As long as they may be, and shorter.
std::vector<planning::TableSource> any_records(const PipelineConfig& config) {
  std::vector<planning::TableSource> sources;
  for (const SourceConfig& source : config.sources) {
    const std::uint32_t most = config.step.max_sample_tokens;
    planning::TableSource& table = sources.emplace_back();
    table.name = source.name;
    for (const std::uint32_t tokens : {most, 1U, most / 2 + 1, 3 * most, most}) {
      table.records.push_back({.tokens = tokens});
    }
  }
  return sources;
}

RC_GTEST_PROP(PipelineGraphProperty, IsPlannedForEveryStrategy, (std::uint64_t seed)) {
  Random random(seed);
  PipelineConfig config = any_pipeline(random);
  config.step.units = config.step.max_sample_tokens + random.below(1'000);
  if (config.step.unit == planning::StepUnit::kSamples) config.step.units = 1 + random.below(100);
  auto records = planning::RecordTable::create(any_records(config)).value();
  const planning::GraphSpec graph = graph_of(config);
  const auto start = planning::first_state(graph, records);
  RC_LOG() << start.status().to_string();
  RC_ASSERT(start.is_ok());
  const auto step = planning::plan_step(graph, *start, records, config.topology.axes);
  RC_LOG() << step.status().to_string();
  RC_ASSERT(step.is_ok() || step.is(ErrorKind::kExhausted));
}

RC_GTEST_PROP(PipelineGraphProperty, APartFitsExactlyWhereCapacityAndRanksSay,
              (std::uint64_t seed)) {
  Random random(seed);
  PipelineConfig config = any_pipeline(random);
  const std::uint32_t room = ranks_of_a_part(config) * config.topology.capacity_tokens;
  config.step.units = planning::kMaxStepUnits;
  config.balance.offload = false;  // With it, a longer part may still find memory.
  for (const bool fits : {true, false}) {
    config.step.max_sample_tokens = fits ? room : room + 1;
    const planning::GraphSpec graph = graph_of(config);
    RC_ASSERT(find_faults(graph).empty());
    RC_LOG() << room << " tokens, " << to_string(config.balance.strategy) << " on "
             << model::to_string(config.topology.axes);
    RC_ASSERT(find_faults_on(config.topology.axes, graph).empty() == fits);
  }
}

}  // namespace
}  // namespace batchloom::control
