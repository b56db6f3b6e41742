// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/baselines.h"
#include "batchloom/planning/naive_hdp.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp_testing.h"
#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::planning {
namespace {

using model::StepPlan;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kBaselines[] = {"static_cp", "naive_hdp", "megatron", "verl_kk"};

StrategyInputs inputs_for(std::uint32_t ranks, std::uint32_t capacity, std::uint32_t context = 0) {
  StrategyInputs inputs;
  inputs.costs = builtin_cost_model("h200-llama7b").value();
  inputs.costs.copy_bytes_per_s = 0;  // Copies take no time.
  inputs.topology = model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}).value();
  inputs.capacity_tokens = capacity;
  inputs.context_tokens = context;
  return inputs;
}

/// As many of each task as there are, in the order of the plan: its samples' lengths.
std::vector<Lengths> lengths_by_task(const StepPlan& plan) {
  std::vector<Lengths> by_task(plan.tasks.size());
  std::vector<bool> seen(plan.samples.size(), false);
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) {
      if (seen[piece.sample.value]) continue;
      seen[piece.sample.value] = true;
      by_task[micro_batch.task.value].push_back(plan.samples[piece.sample.value].tokens);
    }
  }
  return by_task;
}

std::vector<std::uint32_t> members_of(const StepPlan& plan, std::size_t task) {
  std::vector<std::uint32_t> members;
  for (const model::HdpRank rank : plan.members_of(plan.tasks[task])) members.push_back(rank.value);
  return members;
}

RC_GTEST_PROP(Baselines, TakeAsLongAsTheyState, ()) {
  const std::string_view strategy =
      *rc::gen::elementOf(std::vector(std::begin(kBaselines), std::end(kBaselines)));
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 18);
  const auto capacity = *rc::gen::inRange<std::uint32_t>(1, 3000);
  const std::uint32_t most = std::bit_floor(ranks) * capacity;  // Fits with all of them.
  const Lengths lengths =
      *any_lengths({.ranks = ranks, .capacity_tokens = capacity, .most_tokens = most});
  const StrategyInputs inputs = inputs_for(ranks, capacity, most);
  const StepPlan plan = plan_with(strategy, inputs, samples_of(lengths)).value();
  RC_ASSERT(replay_ns(plan) == plan.makespan_ns);
  RC_ASSERT(step_time(plan, inputs.costs, {.links = false}).value().step_ns == plan.makespan_ns);
}

TEST(Baselines, NameTheSampleThatFitsNowhere) {
  for (const std::string_view strategy : kBaselines) {
    StrategyInputs inputs = inputs_for(4, 1000, 4000);
    inputs.offload = false;
    const auto refused = plan_with(strategy, inputs, samples_of(Lengths{100, 4001, 7}));
    ASSERT_TRUE(refused.is(ErrorKind::kInvalid)) << strategy;
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("sample 0:0:1:0 of 4001 tokens does not fit"))
        << strategy;
    EXPECT_TRUE(plan_with(strategy, inputs, samples_of(Lengths{100, 4000, 7})).is_ok()) << strategy;
    EXPECT_TRUE(plan_with(strategy, inputs, samples_of(Lengths{5, 0})).is(ErrorKind::kInvalid));
    auto twice = samples_of(Lengths{5, 6});
    twice[1].id = twice[0].id;
    EXPECT_EQ(plan_with(strategy, inputs, twice).status().message(),
              "sample 0:0:0:0 is given twice");
    inputs.capacity_tokens = 0;
    EXPECT_TRUE(plan_with(strategy, inputs, {}).is(ErrorKind::kInvalid)) << strategy;
  }
}

TEST(Baselines, NothingToDoIsAPlanToo) {
  for (const std::string_view strategy : kBaselines) {
    const StepPlan plan = plan_with(strategy, inputs_for(3, 100), {}).value();
    EXPECT_TRUE(check_plan(plan).is_ok()) << strategy;
    EXPECT_EQ(plan.makespan_ns, 0U) << strategy;
  }
}

TEST(FixedGroups, AreTheSmallestThatHoldTheContext) {
  const auto sizes = [](std::uint32_t ranks, std::uint32_t context) {
    const auto groups = fixed_groups(inputs_for(ranks, 100, context));
    return std::pair(groups.size(), groups.back().size());
  };
  EXPECT_EQ(sizes(12, 500), std::pair(std::size_t{2}, std::size_t{6})) << "5 do not divide 12";
  EXPECT_EQ(sizes(12, 401), std::pair(std::size_t{2}, std::size_t{6}));
  EXPECT_EQ(sizes(12, 400), std::pair(std::size_t{3}, std::size_t{4}));
  EXPECT_EQ(sizes(12, 5000), std::pair(std::size_t{1}, std::size_t{12}));
  StrategyInputs inputs = inputs_for(1, 100);
  inputs.topology = model::Topology::parse("cp=2 pp=2 dp=3").value();
  EXPECT_THAT(fixed_groups(inputs)[1], ElementsAre(model::HdpRank(1), model::HdpRank(4)));
  inputs.topology = model::Topology::parse("dp=3 pp=2 cp=2").value();
  EXPECT_THAT(fixed_groups(inputs)[1], ElementsAre(model::HdpRank(2), model::HdpRank(3)));
}

TEST(StaticCp, PacksInOrderAndDealsByTurns) {
  const StepPlan plan =
      plan_static_cp(inputs_for(4, 100, 200), samples_of(Lengths{150, 60, 50, 140, 1})).value();
  // First-fit into 200 tokens; the third micro-batch goes to the first group again.
  EXPECT_THAT(lengths_by_task(plan),
              testing::UnorderedElementsAre(testing::UnorderedElementsAre(150, 50),
                                            testing::UnorderedElementsAre(60, 140), ElementsAre(1),
                                            ElementsAre()));
  EXPECT_EQ(plan.ranks[0].size(), 2U);
  EXPECT_EQ(plan.ranks[3].size(), 2U) << "the second is a filler";
}

TEST(StaticCp, SpreadsWhatIsLeftOverEvenly) {
  // 300 samples of 257 tokens over 256 ranks: each rank holds 1 or 2 tokens of each.
  const StepPlan plan =
      plan_static_cp(inputs_for(256, 302, 256 * 302), samples_of(Lengths(300, 257))).value();
  EXPECT_EQ(plan.tasks.size(), 1U);
  EXPECT_TRUE(check_plan(plan, {.capacity = model::Capacity{.tokens = 302}}).is_ok());
}

/// Per layer: a token's activations take 100 bytes, and a sample of 1,000 or more tokens computes
/// forward for `forward_ns` for each token.
StrategyInputs inputs_with_copies(std::uint64_t forward_ns) {
  StrategyInputs inputs = inputs_for(64, 1000);
  const auto curve = [](std::uint64_t ns) {
    return CostCurve::create({{1000, ns * 1'000'000}}, CostCurve::Growth::kLinear).value();
  };
  inputs.costs.attention = inputs.costs.attention_forward = CostCurve();
  inputs.costs.linear_forward = curve(forward_ns);
  inputs.costs.linear = curve(3 * forward_ns);
  inputs.costs.activation_bytes_per_token = 100;
  inputs.costs.copy_bytes_per_s = 1'000'000'000;
  inputs.costs.layers = 32;
  return inputs;
}

NaiveItem item_of(const StrategyInputs& inputs, std::uint32_t tokens) {
  const HdpCosts costs = HdpCosts::create(inputs.costs, {.ranks = inputs.topology.hdp_size(),
                                                         .capacity_tokens = inputs.capacity_tokens})
                             .value();
  const auto samples = samples_of(Lengths{tokens});
  NaiveItems items = naive_items(costs, samples);
  EXPECT_TRUE(choose_degrees(costs, inputs.costs, inputs.offload, samples, items).is_ok());
  return items.items[0];
}

TEST(NaiveHdp, TakesTheFewestRanksThatHideTheirCopies) {
  EXPECT_EQ(item_of(inputs_with_copies(100), 32'000).degree, 2U) << "all but 2 of 32 layers";
  EXPECT_EQ(item_of(inputs_with_copies(100), 32'001).degree, 3U);
  EXPECT_EQ(item_of(inputs_with_copies(100), 32'000).offload, model::kOffloadAll);
  // Half of it: (2 + 15) x 32,000 / (32 x 1,000) is 17, and one more to hold whole tokens.
  EXPECT_EQ(item_of(inputs_with_copies(50), 32'000).degree, 18U);
  EXPECT_EQ(item_of(inputs_with_copies(50), 32'000).offload.value, model::kOffloadAll.value / 2);
}

TEST(NaiveHdp, DoesNotCopyWhereThatSavesNoRank) {
  // 32 x 1,000 / (30 x 32,000) is 1/30 of the activations; 3 % are less, 4 % more.
  EXPECT_EQ(item_of(inputs_with_copies(3), 32'000).degree, 32U);
  EXPECT_EQ(item_of(inputs_with_copies(3), 32'000).offload.value, 0U);
  EXPECT_EQ(item_of(inputs_with_copies(4), 32'000).degree, 31U);
  StrategyInputs inputs = inputs_with_copies(100);
  inputs.offload = false;
  EXPECT_EQ(item_of(inputs, 32'000).degree, 32U);
}

TEST(NaiveHdp, DealsByNumbersOfRanks) {
  StrategyInputs inputs = inputs_for(4, 100);
  inputs.offload = false;
  const StepPlan plan =
      plan_naive_hdp(inputs, samples_of(Lengths{30, 300, 60, 40, 150, 50})).value();
  // The long ones first: ranks 0 to 2, then 3 and 0; then bins 60 + 40 and 50 + 30.
  std::map<Lengths, std::vector<std::uint32_t>> members;
  const auto lengths = lengths_by_task(plan);
  for (std::size_t task = 0; task < lengths.size(); ++task) {
    members[lengths[task]] = members_of(plan, task);
  }
  EXPECT_THAT(members[{300}], ElementsAre(0, 1, 2));
  EXPECT_THAT(members[{150}], ElementsAre(3, 0));
  EXPECT_THAT((members[{60, 40}]), ElementsAre(1));
  EXPECT_THAT((members[{50, 30}]), ElementsAre(2));
}

/// The floor is the time without exchange and copies, and no higher with them.
RC_GTEST_PROP(NaiveHdp, TakesNoLessThanItsFloor, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 18);
  const auto capacity = *rc::gen::inRange<std::uint32_t>(1, 3000);
  const StrategyInputs inputs = inputs_for(ranks, capacity);
  const auto samples = samples_of(
      *any_lengths({.ranks = ranks, .capacity_tokens = capacity, .most_tokens = ranks * capacity}));
  const HdpCosts costs =
      HdpCosts::create(inputs.costs, {.ranks = ranks, .capacity_tokens = capacity}).value();
  const bool offload = *rc::gen::arbitrary<bool>();
  NaiveItems items = naive_items(costs, samples);
  RC_ASSERT(choose_degrees(costs, inputs.costs, offload, samples, items).is_ok());
  const std::uint64_t floor_ns = naive_floor_ns(costs, items) * inputs.costs.layers;
  const auto dealt_ns = [&](const model::Topology& topology, std::uint64_t copy_bytes_per_s) {
    CostModel model = inputs.costs;
    model.copy_bytes_per_s = copy_bytes_per_s;
    return deal_naively(costs, model, topology, "test", samples, items, true).value().makespan_ns;
  };
  RC_ASSERT(dealt_ns(inputs.topology, 0) == floor_ns);
  const auto slow = model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}},
                                            {{"cluster", ranks, 1'000'000'000, 5000}})
                        .value();
  RC_ASSERT(dealt_ns(slow, 0) >= floor_ns);
  RC_ASSERT(dealt_ns(inputs.topology, 1'000'000'000) >= floor_ns);
}

std::vector<std::uint32_t> degrees_of(const StepPlan& plan);

TEST(NaiveHdp, OffloadsWhereThatEndsEarlierOrIsTheOnlyWay) {
  const StrategyInputs inputs = inputs_with_copies(100);
  // On 2 ranks it would take 16 times as long as on 32.
  EXPECT_THAT(degrees_of(plan_naive_hdp(inputs, samples_of(Lengths{32'000})).value()),
              ElementsAre(32));
  EXPECT_THAT(degrees_of(plan_naive_hdp(inputs, samples_of(Lengths{65'000})).value()),
              ElementsAre(5));
  EXPECT_THAT(
      std::string(plan_naive_hdp(inputs, samples_of(Lengths{2'000'000})).status().message()),
      HasSubstr("it needs 125 ranks of 1000 tokens each, with 65536/65536 of its"));
  // Two that meet on the way round wait for each other; on 3 ranks each they do not.
  StrategyInputs slow = inputs;
  slow.costs.launch_ns = 1'000'000'000;
  EXPECT_THAT(degrees_of(plan_naive_hdp(slow, samples_of(Lengths{33'000, 33'000})).value()),
              ElementsAre(3, 3));
}

std::vector<std::uint32_t> degrees_of(const StepPlan& plan) {
  std::vector<std::uint32_t> degrees;
  for (const model::Task& task : plan.tasks) degrees.push_back(task.members.size());
  return degrees;
}

TEST(Megatron, TakesPowersOfTwoAndPacksNothing) {
  const StepPlan plan =
      plan_megatron(inputs_for(4, 100), samples_of(Lengths{100, 301, 100, 100, 100})).value();
  EXPECT_THAT(degrees_of(plan), ElementsAre(4, 1, 1, 1, 1));
  EXPECT_THAT(plan_megatron(inputs_for(8, 100), samples_of(Lengths(5, 1)))->tasks.size(), 5U);
}

TEST(Megatron, DoublesGroupsUntilNoRankIsIdle) {
  EXPECT_THAT(degrees_of(plan_megatron(inputs_for(8, 100), samples_of(Lengths{50})).value()),
              ElementsAre(8));
  // Two pairs: the first one is doubled, then the second one.
  EXPECT_THAT(degrees_of(plan_megatron(inputs_for(8, 100), samples_of(Lengths{200, 180})).value()),
              ElementsAre(4, 4));
  EXPECT_THAT(degrees_of(plan_megatron(inputs_for(6, 100), samples_of(Lengths{400})).value()),
              ElementsAre(6));
}

TEST(Megatron, EndsARoundWhereRanksAreEven) {
  const StepPlan plan =
      plan_megatron(inputs_for(4, 100),
                    samples_of(Lengths{200, 100, 100, 100, 100, 100, 100, 100, 100}))
          .value();
  // Ranks 0 and 1 share the first, ranks 2 and 3 take two each: then all begin anew.
  std::vector<std::uint32_t> counts;
  for (const model::IndexRange& range : plan.ranks) counts.push_back(range.size());
  EXPECT_THAT(counts, ElementsAre(2, 2, 3, 3));
}

TEST(Megatron, LooksBeyondASampleThatFindsNoPlace) {
  // Rank 4 is too little for the second; the third, in a bucket of its own, takes it.
  const StepPlan plan = plan_megatron(inputs_for(5, 100), samples_of(Lengths{400, 101, 1})).value();
  std::map<std::uint32_t, std::uint32_t> degrees;
  const auto lengths = lengths_by_task(plan);
  for (std::size_t task = 0; task < lengths.size(); ++task) {
    degrees[lengths[task].at(0)] = plan.tasks[task].members.size();
  }
  EXPECT_EQ(degrees, (std::map<std::uint32_t, std::uint32_t>{{400, 4}, {1, 1}, {101, 5}}));
}

TEST(Megatron, TakesBackWhatMakesRanksUneven) {
  // By squares 100, 81, 4 on two ranks: the third joins the 81 rather than open a round of its own.
  const StepPlan plan = plan_megatron(inputs_for(2, 100), samples_of(Lengths{100, 90, 20})).value();
  EXPECT_THAT(members_of(plan, 2), ElementsAre(1));
  // 100 and 70, then another 70: it is taken back, and both ranks get it in the next round.
  const StepPlan taken =
      plan_megatron(inputs_for(2, 100), samples_of(Lengths{100, 99, 70})).value();
  EXPECT_THAT(degrees_of(taken), ElementsAre(1, 1, 2));
}

TEST(VerlKk, GivesEachGroupAsManySamples) {
  const StepPlan plan =
      plan_verl_kk(inputs_for(2, 100), samples_of(Lengths{100, 10, 10, 10, 10, 10})).value();
  std::vector<std::size_t> counts(2, 0);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (const auto& micro_batch : plan.micro_batches_of(model::HdpRank(rank))) {
      counts[rank] += plan.pieces_of(micro_batch).size();
    }
  }
  EXPECT_THAT(counts, ElementsAre(3, 3)) << "differencing alone would give one and five";
}

TEST(VerlKk, NeverExceedsTheCapacity) {
  // Seven samples of 2 in 8: two micro-batches of 4 and 3 by number, but by cost 7 x 2 is one too
  // many for one of 8.
  const StepPlan plan = plan_verl_kk(inputs_for(1, 8), samples_of(Lengths(7, 3))).value();
  EXPECT_TRUE(check_plan(plan, {.capacity = model::Capacity{.tokens = 8}}).is_ok());
  EXPECT_EQ(plan.tasks.size(), 4U) << "21 tokens would fit into 3, but for their sizes";
}

TEST(VerlKk, PutsLightMicroBatchesAtBothEnds) {
  const StepPlan plan =
      plan_verl_kk(inputs_for(1, 100), samples_of(Lengths{100, 90, 80, 70, 95})).value();
  EXPECT_THAT(lengths_by_task(plan),
              ElementsAre(Lengths{70}, Lengths{90}, Lengths{100}, Lengths{95}, Lengths{80}));
}

}  // namespace
}  // namespace batchloom::planning
