// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/sample_graph_toml.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "batchloom/base/random.h"
#include "batchloom/planning/record_table.h"
#include "batchloom/planning/sample_graph.h"
#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

constexpr std::string_view kVisionText = R"(seed = 17

[step]
tokens = 524_288
max_sample_tokens = 16_384

[[source]]
name = "captions"
weight = 0.5
exhausted = "repeat"
epochs = 3

[[source]]
name = "code"
order = "file"
weight = [{ step = 0, value = 0.1 }, { step = 2000, value = 0.4, ramp = "linear" }]

[[select]]
modality = "image"
distribute = "world"
cost = "vit"
balance = "lpt"

[[select]]
modality = "text"
distribute = "dp"
cost = "h200-llama7b"
balance = "two_level"
capacity = 16_384
broadcast_at = ["tp", "pp"]
)";

/// The same in C++.
GraphSpec vision_spec(Metadata& metadata) {
  const Schedule ramp = Schedule::create({{model::Step(0), Weight(100'000'000)},
                                          {model::Step(2'000), Weight(400'000'000), Ramp::kLinear}})
                            .value();
  SampleGraph graph = SampleGraph(metadata).mix(
      {.seed = 17,
       .unit = StepUnit::kTokens,
       .units_per_step = 524'288,
       .max_sample_tokens = 16'384,
       .sources = {{.name = "captions",
                    .weight = Schedule(Weight(500'000'000)),
                    .exhausted = Exhausted::kRepeat,
                    .epochs = 3},
                   {.name = "code", .weight = ramp, .order = Order::kFile}}});
  graph.select(Modality::kImage)
      .distribute(Spread::kWorld)
      .cost(picture_costs())
      .balance(Balance::kLpt);
  graph.select(Modality::kText)
      .distribute(Spread::kDp)
      .cost("h200-llama7b")
      .balance(Balance::kTwoLevel, {.capacity_tokens = 16'384})
      .broadcast_at(model::Axis::kTp)
      .broadcast_at(model::Axis::kPp);
  return graph.spec();
}

Result<GraphSpec> parsed(std::string_view text) {
  const std::vector<CostModel> models = {picture_costs()};
  return parse_sample_graph(text, models);
}

TEST(SampleGraphToml, IsTheSameGraphAsInCpp) {
  RecordTable nothing = RecordTable::create({}).value();
  const Result<GraphSpec> graph = parsed(kVisionText);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(*graph, vision_spec(nothing));
  EXPECT_EQ(*parsed(to_toml(*graph).value()), *graph);
}

TEST(SampleGraphToml, PlansTheSameAsInCpp) {
  const auto members = vision_samples(3, 200, 4'000);
  GraphSpec graph = *parsed(kVisionText);
  graph.mix.reset();
  SampleGraph built(members);
  built.select(Modality::kImage)
      .distribute(Spread::kWorld)
      .cost(picture_costs())
      .balance(Balance::kLpt);
  built.select(Modality::kText)
      .distribute(Spread::kDp)
      .cost(text_costs())
      .balance(Balance::kTwoLevel, {.capacity_tokens = 16'384})
      .broadcast_at(model::Axis::kTp)
      .broadcast_at(model::Axis::kPp);
  const model::Topology topology = model::Topology::parse("pp=2 dp=4 tp=2").value();
  const GraphPlan one = lay_out(graph, topology, members).value();
  const GraphPlan other = built.plan(topology).value();
  EXPECT_EQ(one.plan, other.plan);
  EXPECT_EQ(one.pictures, other.pictures);
  EXPECT_EQ(one.places.feeder(model::Rank(9)), other.places.feeder(model::Rank(9)));
}

Schedule any_weight_schedule(Random& random) {
  std::vector<WeightPoint> points = {{model::Step(random.below(2) * random.below(100)),
                                      Weight(random.below(kMaxWeight.value + 1))}};
  while (random.below(2) == 0) {
    points.push_back({points.back().step + 1 + random.below(1'000'000), Weight(random.below(5)),
                      static_cast<Ramp>(random.below(3))});
  }
  return Schedule::create(points).value();
}

/// Any graph without faults.
GraphSpec any_graph(Random& random) {
  GraphSpec graph;
  if (random.below(4) != 0) {
    MixSpec& mix = graph.mix.emplace();
    mix.seed = random.below(std::uint64_t{1} << 63);
    mix.unit = static_cast<StepUnit>(random.below(2));
    mix.max_sample_tokens = 1 + static_cast<std::uint32_t>(random.below(kMaxSampleTokens));
    mix.units_per_step = kMaxSampleTokens + random.below(kMaxStepUnits - kMaxSampleTokens);
    for (std::uint64_t i = 0; i <= random.below(4); ++i) {
      const bool repeats = random.below(2) == 0;
      mix.sources.push_back(
          {.name = fmt::format("{} \"quoted\\\" \t\x01 \x7f ä", i),
           .weight = any_weight_schedule(random),
           .exhausted = repeats ? Exhausted::kRepeat : static_cast<Exhausted>(random.below(4)),
           .epochs = repeats ? static_cast<std::uint32_t>(random.below(9)) : 0,
           .order = static_cast<Order>(random.below(2))});
    }
  }
  SelectionSpec text{.modality = Modality::kText};
  text.cost = text_costs();
  text.balance = static_cast<Balance>(random.below(5));
  text.distribute = static_cast<Spread>(random.below(2));
  text.options.capacity_tokens = 1 + static_cast<std::uint32_t>(random.below(1 << 20));
  text.options.min_share_tokens = 1 + static_cast<std::uint32_t>(random.below(1 << 20));
  text.options.offload = random.below(2) == 0;
  if (random.below(2) == 0) text.broadcast_at.push_back(model::Axis::kTp);
  if (random.below(2) == 0) text.broadcast_at.push_back(model::Axis::kPp);
  SelectionSpec image{.modality = Modality::kImage};
  image.cost = picture_costs();
  image.balance = static_cast<Balance>(random.below(3));
  image.distribute = static_cast<Spread>(random.below(3));
  if (random.below(2) == 0) graph.selections.push_back(image);
  graph.selections.push_back(text);
  return graph;
}

RC_GTEST_PROP(SampleGraphTomlProperty, ReadsWhatItWrites, (std::uint64_t seed)) {
  Random random(seed);
  const GraphSpec graph = any_graph(random);
  const std::string text = to_toml(graph).value();
  const Result<GraphSpec> read = parsed(text);
  RC_LOG() << text << read.status().to_string();
  RC_ASSERT(read.is_ok());
  RC_ASSERT(*read == graph);
}

TEST(SampleGraphToml, ASeedBeyondTomlsNumbersIsRefused) {
  GraphSpec graph = *parsed(kVisionText);
  graph.mix->seed = std::uint64_t{1} << 63;
  EXPECT_THAT(to_toml(graph).status().to_string(), HasSubstr("one below 2^63 has"));
}

/// The refusal of the text above in which one stretch is another one.
std::string refusal_with(std::string_view stretch, std::string_view instead) {
  std::string text(kVisionText);
  const std::size_t at = text.find(stretch);
  EXPECT_NE(at, std::string::npos) << stretch;
  text.replace(at, stretch.size(), instead);
  return parsed(text).status().to_string();
}

TEST(SampleGraphToml, FaultsNameLineKeyAndWhatIsKnown) {
  EXPECT_EQ(refusal_with("balance = \"lpt\"", "balance = \"ltp\""),
            "invalid: sample graph: line 22: balance in [[select]]: 'ltp' is unknown; known: none, "
            "lpt, kk, two_level, hdp, two_module");
  EXPECT_EQ(refusal_with("cost = \"vit\"", "cost = \"vti\""),
            "invalid: sample graph: line 21: cost in [[select]]: 'vti' is unknown; known: vit, "
            "h200-llama7b, bytescale-fig6");
  EXPECT_EQ(refusal_with("modality = \"image\"", "modality = \"picture\""),
            "invalid: sample graph: line 19: modality in [[select]]: 'picture' is unknown; known: "
            "text, image");
  EXPECT_THAT(refusal_with("\"world\"", "\"globe\""),
              HasSubstr("line 20: distribute in [[select]]: "
                        "'globe' is unknown; known: dp, hdp, "
                        "world"));
  EXPECT_THAT(refusal_with("[\"tp\", \"pp\"]", "[\"tp\", \"ep\"]"),
              HasSubstr("line 30: broadcast_at in [[select]]: 'ep' is unknown; known: pp, dp, cp, "
                        "tp"));
  EXPECT_THAT(refusal_with("ramp = \"linear\"", "ramp = \"wave\""),
              HasSubstr("line 16: ramp in a point of weight: 'wave' is unknown; known: none, "
                        "linear, cosine"));
  EXPECT_THAT(refusal_with("capacity = 16_384", "capacty = 16_384"),
              HasSubstr("line 29: capacty in [[select]]: unknown key; known: balance, "
                        "broadcast_at, capacity, cost"));
  EXPECT_THAT(
      refusal_with("seed", "sede"),
      HasSubstr("line 1: sede in the file: unknown key; known: seed, select, source, step"));
  EXPECT_THAT(refusal_with("order =", "odrer ="), HasSubstr("line 15: odrer in [[source]]"));
  EXPECT_THAT(refusal_with("max_sample_tokens", "max_tokens"),
              HasSubstr("line 3: [step] lacks max_sample_tokens"));
}

TEST(SampleGraphToml, FaultsNameWhatIsExpected) {
  EXPECT_THAT(refusal_with("524_288", "\"many\""),
              HasSubstr("line 4: tokens in [step]: a whole number is expected, not a text"));
  EXPECT_THAT(refusal_with("524_288", "0"), HasSubstr("0 is not within 1 to 4294967296"));
  EXPECT_THAT(refusal_with("seed = 17", "seed = -1"),
              HasSubstr("line 1: seed in the file: -1 is not within 0 to"));
  EXPECT_THAT(refusal_with("tokens = 524_288", "tokens = 1\nsamples = 2"),
              HasSubstr("line 3: [step] has either tokens or samples"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = -0.5"),
              HasSubstr("line 9: weight in [[source]]: -0.5 is not within 0 to 100000"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = nan"), HasSubstr("is not within 0 to"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = 1e-10"),
              HasSubstr("is less than a billionth, and not 0"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = \"half\""),
              HasSubstr("a number is expected, not a text"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = []"),
              HasSubstr("line 9: weight in [[source]]"));
  EXPECT_THAT(refusal_with("weight = 0.5", "weight = [1]"),
              HasSubstr("{ step, value, ramp } is expected, not a whole number"));
  EXPECT_THAT(refusal_with("weight = 0.5\n", ""), HasSubstr("line 7: [[source]] lacks weight"));
  EXPECT_THAT(refusal_with("capacity = 16_384", "offload = 1"),
              HasSubstr("line 29: offload in [[select]]: true or false is expected"));
  EXPECT_THAT(refusal_with("[\"tp\", \"pp\"]", "\"tp\""),
              HasSubstr("a list of axes is expected, not a text"));
  EXPECT_THAT(refusal_with("[step]", "step = 3\n[other]"),
              HasSubstr("step in the file: [step] is expected, not a whole number"));
}

TEST(SampleGraphToml, FaultsOfTheGraphHaveTheLineOfTheirKey) {
  EXPECT_EQ(refusal_with("balance = \"lpt\"", "balance = \"hdp\""),
            "invalid: sample graph: line 22: select(image).balance(hdp): pictures are neither "
            "packed nor cut; none, lpt, kk or two_module");
  EXPECT_THAT(
      refusal_with("[\"tp\", \"pp\"]", "[\"dp\"]"),
      HasSubstr("line 30: select(text).broadcast_at(dp): ranks along dp need other tokens"));
  EXPECT_THAT(refusal_with("distribute = \"dp\"", "distribute = \"world\""),
              HasSubstr("line 26: select(text).distribute(world)"));
  EXPECT_THAT(refusal_with("distribute = \"dp\"\n", ""),
              HasSubstr("line 24: select(text).distribute(): missing; dp, hdp or world"));
  EXPECT_THAT(refusal_with("name = \"code\"", "name = \"captions\""),
              HasSubstr("line 13: mix: source 'captions' is named twice"));
  EXPECT_THAT(refusal_with("tokens = 524_288", "tokens = 16_000"), HasSubstr("line 3: mix: "));
  EXPECT_THAT(refusal_with("modality = \"text\"", "modality = \"image\""),
              HasSubstr("line 1: graph: nothing lays out the tokens"));
}

TEST(SampleGraphToml, AllFaultsAreTold) {
  std::string text(kVisionText);
  text.replace(text.find("\"lpt\""), 5, "\"ltp\"");
  text.replace(text.find("0.5"), 3, "-1");
  const std::string refusal = parsed(text).status().to_string();
  EXPECT_LT(refusal.find("line 9: "), refusal.find("; line 22: "));
}

TEST(SampleGraphToml, WhatIsNotTomlIsNamedByLineAndColumn) {
  EXPECT_THAT(parsed("seed = 1\nstep = {").status().to_string(),
              HasSubstr("invalid: sample graph: line 2, column "));
  EXPECT_THAT(parsed("seed = 1\nseed = 2").status().to_string(), HasSubstr("line 2, column "));
  EXPECT_THAT(parsed("\xff\xfe").status().to_string(), HasSubstr("invalid: sample graph: line 1"));
  EXPECT_THAT(parsed("").status().to_string(), HasSubstr("nothing lays out the tokens"));
}

}  // namespace
}  // namespace batchloom::planning
