// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/sample_graph.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/model/plan_check.h"
#include "batchloom/planning/record_table.h"
#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using model::Axis;
using testing::HasSubstr;

model::Topology mesh(std::string_view axes) {
  return model::Topology::parse(axes).value();
}

/// Of pictures and text, along world and dp.
SampleGraph vision_graph(std::vector<model::SampleMeta> members) {
  SampleGraph graph(std::move(members));
  graph.select(Modality::kImage)
      .distribute(Spread::kWorld)
      .cost(picture_costs())
      .balance(Balance::kLpt);
  graph.select(Modality::kText)
      .distribute(Spread::kDp)
      .cost(text_costs())
      .balance(Balance::kTwoLevel)
      .broadcast_at(Axis::kTp);
  return graph;
}

/// Of text alone.
SampleGraph text_graph(Balance balance, Spread spread, TokenOptions options = {}) {
  SampleGraph graph(vision_samples(1, 50, 3'000));
  graph.select(Modality::kText).distribute(spread).cost(text_costs()).balance(balance, options);
  return graph;
}

std::string graph_refusal(const SampleGraph& graph, std::string_view axes = "dp=4 tp=2") {
  return graph.plan(mesh(axes)).status().to_string();
}

TEST(SampleGraph, LaysOutTokensAndPictures) {
  const auto members = vision_samples(4, 300, 3'000);
  const GraphPlan plan = vision_graph(members).plan(mesh("dp=4 tp=2")).value();
  EXPECT_EQ(check_plan(plan.plan, {.equal_micro_batch_counts = true}).to_string(), "ok");
  ASSERT_TRUE(plan.pictures.has_value());
  EXPECT_EQ(plan.pictures->buckets, 8U);
  EXPECT_EQ(check_pictures(*plan.pictures, members, plan.plan.topology).to_string(), "ok");
  EXPECT_EQ(plan.places.feeder(model::Rank(3)), model::Rank(2));
}

TEST(SampleGraph, EveryBalanceOfTextLaysOutAllSamples) {
  for (const Balance balance : {Balance::kNone, Balance::kLpt, Balance::kKarmarkarKarp,
                                Balance::kTwoLevel, Balance::kHdp}) {
    const Spread spread = balance == Balance::kHdp ? Spread::kHdp : Spread::kDp;
    const Result<GraphPlan> plan = text_graph(balance, spread).plan(mesh("dp=3 cp=2"));
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->plan.strategy, to_string(balance));
    EXPECT_EQ(plan->plan.samples.size(), 50U);
    EXPECT_EQ(check_plan(plan->plan).to_string(), "ok");
    EXPECT_FALSE(plan->pictures.has_value());
  }
}

TEST(SampleGraph, WithLevelsTheExchangeOfRingsCounts) {
  const model::Topology bare = mesh("dp=3 cp=2");
  const auto levels = [&](std::uint64_t bytes_per_s) {
    return model::Topology::create(bare.axes(), {{"cluster", 6, bytes_per_s, 0}}).value();
  };
  const SampleGraph graph =
      text_graph(Balance::kHdp, Spread::kHdp, {.capacity_tokens = 1'000, .min_share_tokens = 1});
  const std::uint64_t free_ns = graph.plan(bare).value().plan.makespan_ns;
  EXPECT_EQ(graph.plan(levels(UINT64_MAX)).value().plan.makespan_ns, free_ns);
  EXPECT_GT(graph.plan(levels(1'000'000)).value().plan.makespan_ns, free_ns);
}

TEST(SampleGraph, TwoModuleTakesBothSelections) {
  for (const Spread spread : {Spread::kWorld, Spread::kDp}) {
    SampleGraph graph(vision_samples(4, 100, 3'000));
    graph.select(Modality::kImage)
        .distribute(spread)
        .cost(picture_costs())
        .balance(Balance::kTwoModule);
    graph.select(Modality::kText)
        .distribute(Spread::kDp)
        .cost(text_costs())
        .balance(Balance::kTwoModule);
    const GraphPlan plan = graph.plan(mesh("dp=4 tp=2")).value();
    EXPECT_EQ(plan.plan.strategy, "two_module");
    EXPECT_EQ(plan.pictures->spread, spread);
  }
}

TEST(SampleGraph, HdpAlongDpIsTheSameWhereCpHasOneRank) {
  EXPECT_EQ(text_graph(Balance::kHdp, Spread::kDp).plan(mesh("dp=6")).value().plan,
            text_graph(Balance::kHdp, Spread::kHdp).plan(mesh("dp=6")).value().plan);
  EXPECT_EQ(graph_refusal(text_graph(Balance::kHdp, Spread::kDp), "dp=3 cp=2"),
            "invalid: sample graph: select(text).distribute(dp): hdp lays out over dp and cp, and "
            "cp=2; distribute along hdp");
  EXPECT_EQ(graph_refusal(text_graph(Balance::kLpt, Spread::kHdp), "dp=3 cp=2"),
            "invalid: sample graph: select(text).distribute(hdp): lpt lays out over groups along "
            "dp, and cp=2; distribute along dp");
}

TEST(SampleGraph, OptionsReachTheBalance) {
  EXPECT_THAT(graph_refusal(text_graph(Balance::kTwoLevel, Spread::kDp, {.capacity_tokens = 10})),
              HasSubstr("holds 10 tokens each"));
  EXPECT_THAT(graph_refusal(text_graph(Balance::kHdp, Spread::kDp,
                                       {.capacity_tokens = 10, .offload = false})),
              HasSubstr("invalid: sample 0:0:"));
}

TEST(SampleGraph, MembersInAnyOrderGiveTheSamePlan) {
  auto members = vision_samples(4, 200, 3'000);
  const GraphPlan plan = vision_graph(members).plan(mesh("dp=4 tp=2")).value();
  std::ranges::reverse(members);
  const GraphPlan other = vision_graph(members).plan(mesh("dp=4 tp=2")).value();
  EXPECT_EQ(plan.plan, other.plan);
  EXPECT_EQ(plan.pictures, other.pictures);
}

TEST(SampleGraph, TellsAllFaultsAtOnceEachWithItsCall) {
  SampleGraph graph(vision_samples(1, 5, 10));
  graph.select(Modality::kImage)
      .distribute(Spread::kWorld)
      .cost(text_costs())
      .balance(Balance::kHdp)
      .broadcast_at(Axis::kTp);
  graph.select(Modality::kText)
      .distribute(Spread::kWorld)
      .cost("vit")
      .balance(Balance::kTwoLevel, {.capacity_tokens = 0, .min_share_tokens = 0})
      .broadcast_at(Axis::kTp)
      .broadcast_at(Axis::kDp)
      .broadcast_at(Axis::kTp);
  const std::string faults = graph_refusal(graph);
  EXPECT_THAT(faults, HasSubstr("invalid: sample graph: 9 faults: (1) "));
  EXPECT_THAT(faults, HasSubstr("select(text).cost(): "));
  EXPECT_THAT(faults, HasSubstr("h200-llama7b")) << "the names there are";
  EXPECT_THAT(faults, HasSubstr("select(image).balance(hdp): pictures are neither packed nor cut"));
  EXPECT_THAT(faults, HasSubstr("select(image).cost(h200-llama7b): has no times for pictures"));
  EXPECT_THAT(faults, HasSubstr("select(image).broadcast_at(tp): "));
  EXPECT_THAT(faults, HasSubstr("select(text).distribute(world): ranks along tp and pp"));
  EXPECT_THAT(faults, HasSubstr("select(text).balance(two_level): a capacity of 0"));
  EXPECT_THAT(faults, HasSubstr("select(text).balance(two_level): a least share of 0"));
  EXPECT_THAT(faults,
              HasSubstr("select(text).broadcast_at(tp, dp, tp): ranks along dp need other"));
  EXPECT_THAT(faults, HasSubstr("tp is named twice"));
}

TEST(SampleGraph, TellsWhatIsMissingOrSaidTwice) {
  SampleGraph graph(vision_samples(1, 5, 10));
  EXPECT_EQ(graph_refusal(graph),
            "invalid: sample graph: graph: nothing lays out the tokens; select text");
  graph.select(Modality::kText);
  EXPECT_THAT(graph_refusal(graph), HasSubstr("3 faults: (1) select(text).distribute(): missing"));
  EXPECT_THAT(graph_refusal(graph), HasSubstr("none, lpt, kk, two_level, hdp, two_module"));
  SampleGraph twice = text_graph(Balance::kLpt, Spread::kDp);
  twice.select(Modality::kText)
      .distribute(Spread::kDp)
      .distribute(Spread::kDp)
      .cost(text_costs())
      .cost(text_costs())
      .balance(Balance::kLpt)
      .balance(Balance::kLpt);
  EXPECT_THAT(graph_refusal(twice), HasSubstr("4 faults"));
  EXPECT_THAT(graph_refusal(twice), HasSubstr("select(text).distribute(dp): said twice"));
  EXPECT_THAT(graph_refusal(twice), HasSubstr("select(text): selected already"));
}

TEST(SampleGraph, RefusesHalfOfTwoModule) {
  EXPECT_EQ(graph_refusal(text_graph(Balance::kTwoModule, Spread::kDp)),
            "invalid: sample graph: select(text).balance(two_module): is of encoder and backbone "
            "together; balance image by it, too");
  SampleGraph graph(vision_samples(1, 5, 10));
  for (const Modality modality : {Modality::kImage, Modality::kText}) {
    graph.select(modality)
        .distribute(Spread::kHdp)
        .cost(modality == Modality::kImage ? picture_costs() : text_costs())
        .balance(Balance::kTwoModule);
  }
  EXPECT_THAT(graph_refusal(graph), HasSubstr("2 faults: (1) select(image).distribute(hdp)"));
}

TEST(SampleGraph, RefusesASelectionThatFindsNothing) {
  auto members = vision_samples(1, 5, 10);
  for (model::SampleMeta& sample : members) sample.image_patches.clear();
  EXPECT_EQ(graph_refusal(vision_graph(members)),
            "invalid: sample graph: select(image): finds nothing: no sample of 5 has a picture");
  EXPECT_THAT(graph_refusal(vision_graph({})),
              HasSubstr("select(text): finds nothing: the step has no"));
  EXPECT_TRUE(lay_out(vision_graph({}).spec(), mesh("dp=4"), members).is_ok())
      << "steps of a run differ";
}

RecordTable some_records() {
  TableSource pages{.name = "pages", .records = {}};
  for (std::uint32_t i = 0; i < 40; ++i) {
    pages.records.push_back(
        {.tokens = 20 + i, .pictures = {{.first_token = i, .patches = 64 + i}}});
  }
  TableSource text{.name = "text", .records = std::vector<TableRecord>(90, {.tokens = 30})};
  return RecordTable::create({pages, text}).value();
}

MixSpec some_mix() {
  return {.seed = 5,
          .unit = StepUnit::kTokens,
          .units_per_step = 400,
          .max_sample_tokens = 25,
          .sources = {{.name = "text", .weight = Schedule(Weight(1))},
                      {.name = "pages", .weight = Schedule(Weight(3))}}};
}

TEST(SampleGraph, OfMetadataPlansTheFirstStepOfItsMix) {
  RecordTable records = some_records();
  SampleGraph graph = SampleGraph(records).mix(some_mix());
  graph.select(Modality::kImage)
      .distribute(Spread::kWorld)
      .cost(picture_costs())
      .balance(Balance::kLpt);
  graph.select(Modality::kText)
      .distribute(Spread::kDp)
      .cost("h200-llama7b")
      .balance(Balance::kLpt, {.capacity_tokens = 100});
  const GraphPlan plan = graph.plan(mesh("dp=2")).value();
  std::uint64_t tokens = 0;
  std::uint64_t of_pages = 0;
  for (const model::PlanSample& sample : plan.plan.samples) {
    tokens += sample.tokens;
    if (sample.id.source == model::SourceId(0)) of_pages += sample.tokens;
  }
  EXPECT_LE(tokens, 400U);
  EXPECT_GT(tokens, 375U);
  EXPECT_NEAR(static_cast<double>(of_pages), 300, 25) << "sources are matched by name";
  EXPECT_FALSE(plan.pictures->pictures.empty());
}

TEST(SampleGraph, TellsFaultsOfTheMix) {
  RecordTable records = some_records();
  const auto refusal_of = [&](const MixSpec& mix, std::uint32_t capacity = 100) {
    SampleGraph graph = SampleGraph(records).mix(mix);
    graph.select(Modality::kText)
        .distribute(Spread::kDp)
        .cost(text_costs())
        .balance(Balance::kLpt, {.capacity_tokens = capacity});
    return graph_refusal(graph);
  };
  EXPECT_EQ(refusal_of(some_mix()), "ok");
  MixSpec mix = some_mix();
  mix.sources[0].name = "txt";
  EXPECT_EQ(refusal_of(mix),
            "invalid: mix: source 'text' of the metadata is not named; name it, with weight 0 if "
            "nothing of it is wanted");
  mix = some_mix();
  mix.sources.push_back({.name = "more", .weight = Schedule(Weight(1))});
  EXPECT_EQ(refusal_of(mix),
            "invalid: mix: there is no source 'more'; the metadata has 'pages', 'text'");
  mix.sources[2].name = "text";
  EXPECT_THAT(refusal_of(mix), HasSubstr("mix: source 'text' is named twice"));
  mix = some_mix();
  mix.sources[1].epochs = 3;
  EXPECT_THAT(refusal_of(mix), HasSubstr("mix: source 'pages' is to make 3 passes"));
  mix = some_mix();
  mix.max_sample_tokens = 0;
  EXPECT_THAT(refusal_of(mix), HasSubstr("mix: max_sample_tokens is 0"));
  EXPECT_THAT(refusal_of(some_mix(), 24),
              HasSubstr("mix: parts may have 25 tokens (max_sample_tokens), and lpt on dp=4 tp=2 "
                        "cannot lay out one"));
}

TEST(SampleGraph, MixBelongsToMetadata) {
  RecordTable records = some_records();
  SampleGraph none(records);
  none.select(Modality::kText).distribute(Spread::kDp).cost(text_costs()).balance(Balance::kLpt);
  EXPECT_EQ(graph_refusal(none), "invalid: sample graph: mix: missing; it says what steps contain");
  SampleGraph given = text_graph(Balance::kLpt, Spread::kDp);
  given.mix(some_mix());
  EXPECT_EQ(graph_refusal(given),
            "invalid: sample graph: mix: the step's members are given already");
  SampleGraph twice = SampleGraph(records).mix(some_mix());
  twice.mix(some_mix());
  EXPECT_THAT(graph_refusal(twice), HasSubstr("mix: said twice"));
}

}  // namespace
}  // namespace batchloom::planning
