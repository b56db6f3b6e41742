// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/replan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/base/real_runtime.h"
#include "batchloom/client/client_world_testing.h"
#include "batchloom/client/replanned_step.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model_toml.h"

namespace batchloom::client {
namespace {

using model::HdpRank;
using model::StepPlan;

model::Topology topology_of(std::string_view axes) {
  return must(model::Topology::parse(axes));
}

/// A step as an index has it.
struct Indexed {
  store::IndexedStep step;
  store::BatchOrigin origin = {};

  StoredStep stored() const { return {Step(0), step, origin}; }
};

/// Samples of these lengths, whole, on one rank, in this order; their ids descend.
Indexed indexed(const std::vector<std::uint32_t>& tokens, std::string strategy = "synthetic") {
  Indexed indexed{.step = {.plan = {}, .origins = {}}};
  StepPlan& plan = indexed.step.plan;
  plan.strategy = std::move(strategy);
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    model::PlanSample& sample = plan.samples.emplace_back();
    sample.id.index = model::RecordIndex(tokens.size() - i);
    sample.tokens = tokens[i];
    plan.pieces.push_back({model::SampleIndex(i), 0, tokens[i]});
  }
  const auto pieces = static_cast<std::uint32_t>(plan.pieces.size());
  plan.micro_batches = {{model::TaskIndex(0), {0, pieces}}};
  plan.ranks = {{0, 1}};
  return indexed;
}

std::uint32_t fullest_micro_batch(const StepPlan& plan) {
  std::uint32_t fullest = 0;
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t tokens = 0;
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
    fullest = std::max(fullest, tokens);
  }
  return fullest;
}

RC_GTEST_PROP(Replan, AnyStepForAnyTopologyKeepsItsSamples, ()) {
  const TestStep step = make_step({.seed = *rc::gen::arbitrary<std::uint64_t>(),
                                   .ranks = *rc::gen::inRange(1U, 6U),
                                   .samples = *rc::gen::inRange(0U, 12U)});
  Indexed stored{.step = {.plan = step.plan, .origins = {}}};
  stored.step.plan.strategy = *rc::gen::element<std::string>("", "lpt", "hdp", "two_level");
  stored.origin.capacity_tokens = 40;
  const auto dp = *rc::gen::inRange(1U, 7U);
  const auto cp = *rc::gen::inRange(1U, 4U);
  const auto topology =
      must(model::Topology::create({{model::Axis::kDp, dp}, {model::Axis::kCp, cp}}));
  const StepPlan plan = must(Replanner(topology).plan(stored.stored()));
  for (HdpRank rank; rank.value < dp * cp; ++rank) {
    const Status checked = check_replan({step.plan, plan, rank});
    if (!checked.is_ok()) RC_FAIL(checked.to_string());
  }
  RC_ASSERT(fullest_micro_batch(plan) <= 40U);
  RC_ASSERT(must(Replanner(topology).plan(stored.stored())) == plan);
}

TEST(Replan, TheStrategyIsTheStoredOneWhereThePlannerKnowsIt) {
  for (const auto& [stored, planned] :
       {std::pair("hdp", "hdp"), {"kk", "kk"}, {"synthetic", "lpt"}, {"", "lpt"}}) {
    const StepPlan plan =
        must(Replanner(topology_of("dp=2")).plan(indexed({5, 9, 7}, stored).stored()));
    EXPECT_EQ(plan.strategy, planned);
  }
}

TEST(Replan, WithoutStrategySamplesStayWhole) {
  const StepPlan plan = must(Replanner(topology_of("dp=2")).plan(indexed({5, 9, 7}).stored()));
  for (const model::Piece& piece : plan.pieces) {
    EXPECT_EQ(piece.lo, 0U);
    EXPECT_EQ(piece.hi, plan.samples[piece.sample.value].tokens);
  }
}

TEST(Replan, CapacityIsTheIndexsOrThatOfTheFullestMicroBatch) {
  Indexed step = indexed({5, 9, 7, 9});
  EXPECT_EQ(fullest_micro_batch(must(Replanner(topology_of("dp=1")).plan(step.stored()))), 30U);
  step.origin.capacity_tokens = 14;
  EXPECT_EQ(fullest_micro_batch(must(Replanner(topology_of("dp=1")).plan(step.stored()))), 14U);
}

TEST(Replan, SharesAndOffloadAreTheIndexs) {
  Indexed step = indexed({40, 9}, "hdp");
  step.origin.capacity_tokens = 20;
  step.origin.min_share_tokens = 5;
  const auto ring_of_longest = [&](std::string_view axes) {
    const StepPlan plan = must(Replanner(topology_of(axes)).plan(step.stored()));
    return std::ranges::count(plan.pieces, model::SampleIndex(0), &model::Piece::sample);
  };
  EXPECT_TRUE(Replanner(topology_of("dp=1")).plan(step.stored()).status().error_case() ==
              ErrorCase::kDoesNotFit);
  EXPECT_GE(ring_of_longest("dp=8"), 2);
  step.origin.offload = true;
  EXPECT_EQ(ring_of_longest("dp=1"), 1);
}

TEST(Replan, SaysWhichSampleFitsNowhere) {
  Indexed step = indexed({5, 90, 7});
  step.origin.capacity_tokens = 40;
  const Status refused = Replanner(topology_of("dp=8")).plan(step.stored()).status();
  EXPECT_EQ(refused.error_case(), ErrorCase::kDoesNotFit);
  EXPECT_TRUE(is_error(refused, ErrorKind::kInvalid,
                       {"sample 0:0:2:0 of 90 tokens", "1 ranks holds 40 tokens"}));
  EXPECT_TRUE(Replanner(topology_of("dp=1 cp=3")).plan(step.stored()).is_ok());
}

TEST(Replan, SaysAtOnceThatSamplesMayBeTooLong) {
  Indexed step = indexed({5, 9, 7}, "hdp");
  step.origin.capacity_tokens = 40;
  step.origin.max_sample_tokens = 150;
  const Status refused = Replanner(topology_of("dp=3")).plan(step.stored()).status();
  EXPECT_EQ(refused.error_case(), ErrorCase::kDoesNotFit);
  EXPECT_TRUE(is_error(refused, ErrorKind::kInvalid,
                       {"may have 150 tokens (max_sample_tokens), and hdp on dp=3 has room for "
                        "120: 3 ranks of capacity 40; use more ranks"}));
  EXPECT_TRUE(Replanner(topology_of("dp=4")).plan(step.stored()).is_ok());
  step.step.plan.strategy = "kk";
  EXPECT_TRUE(is_error(Replanner(topology_of("dp=4 cp=1")).plan(step.stored()).status(),
                       ErrorKind::kInvalid,
                       {"kk on dp=4 cp=1 has room for 40: 1 rank of capacity 40; use more ranks "
                        "along cp"}));
  EXPECT_TRUE(Replanner(topology_of("dp=1 cp=4")).plan(step.stored()).is_ok());
}

TEST(Replan, StrategiesThatSplitSamplesAreNotForJobsOfWholeOnes) {
  for (const std::string strategy : {"hdp", "dp_balance", "megatron"}) {
    const Status refused = admit_whole_samples(indexed({5}, strategy).stored());
    EXPECT_EQ(refused.error_case(), ErrorCase::kSplitSamples);
    EXPECT_TRUE(is_error(refused, ErrorKind::kInvalid, {"is balanced by " + strategy + ":"}));
  }
  for (const std::string strategy :
       {"", "none", "lpt", "kk", "two_level", "static_cp", "foreign"}) {
    EXPECT_TRUE(admit_whole_samples(indexed({5}, strategy).stored()).is_ok()) << strategy;
  }
}

TEST(Replan, CostsAreThoseTheIndexCarriesElseNames) {
  planning::CostModel costs = must(planning::builtin_cost_model("h200-llama7b"));
  Indexed step = indexed({5, 9, 7});
  Replanner replanner(topology_of("dp=1"));
  const std::uint64_t by_default = must(replanner.plan(step.stored())).makespan_ns;
  step.origin.cost_model = "bytescale-fig6";
  const std::uint64_t by_name = must(replanner.plan(step.stored())).makespan_ns;
  EXPECT_NE(by_name, by_default);
  costs.name = "mine";
  costs.launch_ns += 1'000'000;
  step.origin.cost_model = costs.name;
  EXPECT_EQ(must(replanner.plan(step.stored())).makespan_ns, by_default) << "nobody knows it";
  const std::string table = planning::to_toml(costs);
  step.origin.cost_table = to_bytes(table);
  EXPECT_EQ(must(replanner.plan(step.stored())).makespan_ns, by_default + 1'000'000 * costs.layers);
  step.origin.cost_table = to_bytes("no table");
  EXPECT_TRUE(replanner.plan(step.stored()).is(ErrorKind::kInvalid));
}

TEST(Replan, AConsumerReadsAStreamForAnotherTopology) {
  const auto runtime = make_real_runtime();
  ClientWorld world(*runtime, View::kMetered);
  const TestStep pack[] = {make_whole_step({.seed = 1, .ranks = 4}),
                           make_whole_step({.seed = 50, .ranks = 4})};
  world.producer().append(pack);
  for (const std::uint32_t ranks : {1U, 3U, 8U}) {
    const auto topology = must(model::Topology::create({{model::Axis::kDp, ranks}}));
    for (std::uint64_t number = 0; number < 2; ++number) {
      const TestStep& step = pack[number];
      Indexed stored{.step = {.plan = step.plan, .origins = {}}};
      const StepPlan plan = must(Replanner(topology).plan(stored.stored()));
      std::vector<StepPtr> batches;
      for (HdpRank rank; rank.value < ranks; ++rank) {
        const auto consumer = must(Consumer::open(
            world.feed(),
            {.rank = rank, .ranks = ranks, .plan_step = plan_for(topology), .start = Step(number)},
            {}));
        batches.push_back(must(consumer->next({})));
      }
      EXPECT_TRUE(hold_step(batches, step, plan)) << "step " << number << " for " << ranks;
    }
  }
}

}  // namespace
}  // namespace batchloom::client
