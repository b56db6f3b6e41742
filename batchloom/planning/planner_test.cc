// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/planner.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "batchloom/base/random.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/planning/record_table.h"
#include "batchloom/planning/sample_graph.h"
#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSteps = 1'000;
constexpr std::uint64_t kChange = 400;  ///< The step from which weights are others.
constexpr std::uint64_t kAsked = 390;   ///< The step before which they are asked for.
constexpr std::uint32_t kLongestPart = 200;

RecordTable planner_records() {
  Random random(8);
  const auto records = [&](std::size_t count, std::uint32_t longest, bool pictures) {
    std::vector<TableRecord> result;
    for (std::size_t i = 0; i < count; ++i) {
      result.push_back({.tokens = 1 + static_cast<std::uint32_t>(random.below(longest))});
      if (!pictures) continue;
      result.back().pictures = {
          {.first_token = 0, .patches = 64 + static_cast<std::uint32_t>(random.below(900))}};
    }
    return result;
  };
  return RecordTable::create({{.name = "pages", .records = records(300, 150, true)},
                              {.name = "books", .records = records(40, 900, false)},
                              {.name = "code", .records = records(500, 60, false)},
                              {.name = "none", .records = {}}})
      .value();
}

MixSpec weighted() {
  const auto endless = [](std::string name, std::uint64_t weight) {
    return MixSource{.name = std::move(name),
                     .weight = Schedule(Weight(weight)),
                     .exhausted = Exhausted::kRepeat};
  };
  return {.seed = 3,
          .unit = StepUnit::kTokens,
          .units_per_step = 1'500,
          .max_sample_tokens = kLongestPart,
          .sources = {endless("pages", 5), endless("books", 3), endless("code", 2),
                      endless("none", 1)}};
}

GraphSpec graph_of(Metadata& metadata, Balance balance, Spread spread, bool pictures) {
  SampleGraph graph = SampleGraph(metadata).mix(weighted());
  graph.select(Modality::kText)
      .distribute(spread)
      .cost(text_costs())
      .balance(balance, {.capacity_tokens = 200, .min_share_tokens = 50});
  if (pictures) {
    graph.select(Modality::kImage)
        .distribute(Spread::kWorld)
        .cost(picture_costs())
        .balance(balance == Balance::kTwoModule ? balance : Balance::kLpt);
  }
  return graph.spec();
}

/// With the update of the weights, which is asked for just before kAsked.
PlannerState asked(const GraphSpec& graph, Metadata& metadata, PlannerState state) {
  if (state.mixture.step != model::Step(kAsked)) return state;
  const std::array update = {NamedWeight{"books", Weight(1)}, NamedWeight{"code", Weight(12)}};
  return set_weights(graph, state, metadata, model::Step(kChange), update).value();
}

struct PlannedRun {
  std::vector<std::vector<model::SampleMeta>> members;
  std::vector<std::uint64_t> digests;
  std::vector<PlannerState> states;  ///< After each step.
};

PlannedRun run_planner(const GraphSpec& graph, Metadata& metadata, std::string_view axes) {
  const model::Topology topology = model::Topology::parse(axes).value();
  PlannedRun run;
  PlannerState state = first_state(graph, metadata).value();
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    state = asked(graph, metadata, std::move(state));
    const auto planned = plan_step(graph, state, metadata, topology).value();
    EXPECT_EQ(planned->step, model::Step(step));
    EXPECT_FALSE(planned->last);
    if (step % 50 == 0) {
      EXPECT_EQ(check_plan(planned->layout.plan).to_string(), "ok");
    }
    run.members.push_back(planned->members);
    run.digests.push_back(planned->layout.plan.digest);
    state = planned->next;
    run.states.push_back(state);
  }
  return run;
}

class PlannerRuns : public testing::Test {
 protected:
  RecordTable records_ = planner_records();
  GraphSpec two_level_ = graph_of(records_, Balance::kTwoLevel, Spread::kDp, true);
};

TEST_F(PlannerRuns, MembershipDependsOnNeitherTopologyNorBalance) {
  const PlannedRun run = run_planner(two_level_, records_, "dp=4 tp=2");
  const PlannedRun wide = run_planner(two_level_, records_, "pp=2 dp=3 cp=5");
  EXPECT_EQ(run.members, wide.members);
  EXPECT_EQ(run.states, wide.states);
  EXPECT_NE(run.digests, wide.digests);
  const PlannedRun hybrid =
      run_planner(graph_of(records_, Balance::kHdp, Spread::kHdp, false), records_, "dp=6");
  EXPECT_EQ(run.members, hybrid.members);
  EXPECT_EQ(run.states, hybrid.states);
  const PlannedRun both = run_planner(graph_of(records_, Balance::kTwoModule, Spread::kDp, true),
                                      records_, "dp=2 cp=2");
  EXPECT_EQ(run.members, both.members);
  EXPECT_EQ(run.states, both.states);
}

TEST_F(PlannerRuns, MembersAreThoseDrawnById) {
  const model::Topology topology = model::Topology::parse("dp=4 tp=2").value();
  PlannerState state = first_state(two_level_, records_).value();
  for (int step = 0; step < 20; ++step) {
    std::vector<model::SampleMeta> drawn = draw_step(two_level_, state, records_).value()->members;
    const auto planned = plan_step(two_level_, state, records_, topology).value();
    EXPECT_NE(planned->members, drawn) << "in another order";
    std::ranges::sort(drawn, {}, &model::SampleMeta::id);
    EXPECT_EQ(planned->members, drawn);
    EXPECT_TRUE(std::ranges::equal(planned->members, planned->layout.plan.samples, {},
                                   &model::SampleMeta::id, &model::PlanSample::id));
    state = planned->next;
  }
}

/// A source's share of the tokens of steps [begin, end).
double share_of(const PlannedRun& run, std::uint32_t source, std::uint64_t begin,
                std::uint64_t end) {
  double own = 0;
  double all = 0;
  for (std::uint64_t step = begin; step < end; ++step) {
    for (const model::SampleMeta& sample : run.members[step]) {
      all += sample.tokens;
      if (sample.id.source.value == source) own += sample.tokens;
    }
  }
  return own / all;
}

TEST_F(PlannerRuns, WeightsHoldBeforeAndAfterTheirChange) {
  const PlannedRun run = run_planner(two_level_, records_, "dp=4 tp=2");
  EXPECT_NEAR(share_of(run, 0, 0, kChange), 0.5, 0.001);
  EXPECT_NEAR(share_of(run, 1, 0, kChange), 0.3, 0.001);
  EXPECT_NEAR(share_of(run, 1, kChange, kSteps), 1.0 / 18, 0.001);
  EXPECT_NEAR(share_of(run, 2, kChange, kSteps), 12.0 / 18, 0.001);
  EXPECT_EQ(share_of(run, 3, 0, kSteps), 0) << "an empty source takes no part";
  EXPECT_EQ(run.states.back().mixture.version, WeightsVersion(1));
}

TEST_F(PlannerRuns, AStateThatWasStoredGivesTheSamePlans) {
  const model::Topology topology = model::Topology::parse("dp=4 tp=2").value();
  const PlannedRun run = run_planner(two_level_, records_, "dp=4 tp=2");
  for (const std::uint64_t at : {0U, 394U, 700U}) {  // The second: while the update waits.
    const Bytes stored = encode_mixture_state(run.states[at].mixture);
    PlannerState state{decode_mixture_state(stored).value()};
    EXPECT_EQ(state, run.states[at]);
    EXPECT_EQ(encode_mixture_state(state.mixture), stored);
    for (std::uint64_t step = at + 1; step < std::min(at + 200, kSteps); ++step) {
      state = asked(two_level_, records_, std::move(state));
      const auto planned = plan_step(two_level_, state, records_, topology).value();
      ASSERT_EQ(planned->members, run.members[step]) << step;
      ASSERT_EQ(planned->layout.plan.digest, run.digests[step]) << step;
      state = planned->next;
    }
  }
}

TEST(Planner, EveryRecordOnceAndThenTheEnd) {
  RecordTable records = planner_records();
  GraphSpec graph = graph_of(records, Balance::kLpt, Spread::kDp, false);
  for (MixSource& source : graph.mix->sources) source.exhausted = Exhausted::kDrop;
  const model::Topology topology = model::Topology::parse("dp=2").value();
  std::map<model::SampleId, std::uint32_t> tokens;
  PlannerState state = first_state(graph, records).value();
  bool last = false;
  while (true) {
    const auto planned = plan_step(graph, state, records, topology).value();
    if (!planned) break;
    EXPECT_FALSE(last);
    last = planned->last;
    for (const model::SampleMeta& sample : planned->members) {
      EXPECT_TRUE(tokens.emplace(sample.id, sample.tokens).second) << to_string(sample.id);
    }
    state = planned->next;
  }
  std::uint64_t drawn = 0;
  for (const auto& [id, count] : tokens) drawn += count;
  std::uint64_t all = 0;
  for (std::uint32_t source = 0; source < 4; ++source) {
    for (std::uint64_t i = 0; i < records.sources()[source].records; ++i) {
      all += records.tokens(model::SourceId(source), model::RecordIndex(i)).value();
    }
  }
  EXPECT_EQ(drawn, all);
}

TEST(Planner, ErrorsNameWhatIsWrong) {
  RecordTable records = planner_records();
  GraphSpec graph = graph_of(records, Balance::kLpt, Spread::kDp, false);
  const PlannerState state = first_state(graph, records).value();
  const std::array unknown = {NamedWeight{"bocks", Weight(1)}};
  EXPECT_EQ(set_weights(graph, state, records, model::Step(3), unknown).status().to_string(),
            "invalid: new weights: there is no source 'bocks'");
  const model::Topology narrow = model::Topology::parse("dp=2").value();
  graph.selections[0].options.capacity_tokens = 50;
  EXPECT_THAT(plan_step(graph, state, records, narrow).status().to_string(),
              HasSubstr("does not fit: a group of 1 ranks holds 50 tokens each"));
  graph.selections[0].distribute = Spread::kWorld;
  EXPECT_THAT(first_state(graph, records).status().to_string(),
              HasSubstr("select(text).distribute(world)"));
  graph.mix.reset();
  graph.selections[0].distribute = Spread::kDp;
  EXPECT_THAT(first_state(graph, records).status().to_string(), HasSubstr("mix: missing"));
}

}  // namespace
}  // namespace batchloom::planning
