// SPDX-License-Identifier: Apache-2.0
// What holds for plans whose ranks are pipelines, ours and the published ones, whatever the
// lengths.
#include "batchloom/planning/hdp_pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "batchloom/base/random.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/model/plan_digest.h"
#include "batchloom/model/rank_events.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/paper_balance.h"
#include "batchloom/planning/pipeline_bound.h"
#include "batchloom/planning/pipeline_time.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::StepPlan;

constexpr std::uint32_t kPipelineCapacity = 8192;

const CostModel& costs_of_test() {
  static const CostModel model = builtin_cost_model("h200-llama7b").value();
  return model;
}

model::Topology pipelines(std::uint32_t stages, std::uint32_t ranks) {
  return model::Topology::create({{.axis = model::Axis::kPp, .extent = stages},
                                  {.axis = model::Axis::kDp, .extent = ranks}})
      .value();
}

/// The lists that are proven to end are those that the walk of all events took.
void expect_proven_order(const StepPlan& plan, const StepTime& time) {
  const auto stages = model::stage_events_of(plan);
  EXPECT_EQ(model::check_stage_events(plan, stages).to_string(), "ok");
  std::vector<std::vector<std::uint32_t>> next(stages.size());
  for (auto& of_stage : next) of_stage.resize(plan.ranks.size());
  for (const EventTime& walked : time.events) {
    for (const HdpRank rank : plan.members_of(plan.tasks[walked.task.value])) {
      const std::uint32_t place = next[walked.stage][rank.value]++;
      const model::RankEvent& listed = stages[walked.stage].of(rank)[place];
      ASSERT_EQ(listed.event, (model::Event{walked.task, walked.phase}));
    }
  }
}

/// All that a plan must be.
void expect_sound_pipelines(const StepPlan& plan) {
  const Status checked = model::check_plan(
      plan, {.capacity = model::Capacity{.tokens = kPipelineCapacity, .layers = 32}});
  EXPECT_TRUE(checked.is_ok()) << checked.to_string();
  EXPECT_EQ(plan.digest, model::plan_digest(plan));
  EXPECT_GE(plan.makespan_ns, plan.lower_bound_ns);
  const auto time = step_time(plan, costs_of_test(), {.links = false});
  ASSERT_TRUE(time.is_ok()) << "the events wait for each other";
  EXPECT_EQ(time->step_ns, plan.makespan_ns) << "what pipelines execute is what was planned";
  expect_proven_order(plan, *time);
}

struct DrawnStep {
  std::uint32_t stages = 0;
  std::uint32_t ranks = 0;
  Lengths lengths;
};

rc::Gen<Lengths> lengths_for(std::uint32_t ranks) {
  return any_lengths({.ranks = ranks,
                      .capacity_tokens = kPipelineCapacity,
                      .most_tokens = ranks * kPipelineCapacity});
}

DrawnStep drawn_step() {
  DrawnStep step;
  step.stages = *rc::gen::inRange<std::uint32_t>(2, 6);
  step.ranks = *rc::gen::inRange<std::uint32_t>(1, 21);
  step.lengths = *rc::gen::resize(60, lengths_for(step.ranks));
  return step;
}

StepPlan planned(const DrawnStep& step) {
  return HdpPlanner::create(costs_of_test(), pipelines(step.stages, step.ranks), {})
      .value()
      .plan(samples_of(step.lengths))
      .value();
}

RC_GTEST_PROP(HdpPipeline, IsSoundForAnyLengths, ()) {
  const DrawnStep step = drawn_step();
  expect_sound_pipelines(planned(step));
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(HdpPipeline, IsNeverWorseThanThePublishedRules) {
  Random random(11);
  for (std::uint64_t seed = 0; seed < 36; ++seed) {
    DrawnStep step{.stages = static_cast<std::uint32_t>(2 + random.below(4)),
                   .ranks = static_cast<std::uint32_t>(1 + random.below(16)),
                   .lengths = {}};
    step.lengths = lengths_for(step.ranks)(rc::Random(seed), 300).value();
    const StepPlan ours = planned(step);
    const auto topology = pipelines(step.stages, step.ranks);
    for (const auto plan_paper : {plan_dp_balance, plan_pp_balance}) {
      const StepPlan paper =
          plan_paper(costs_of_test(), topology, {}, samples_of(step.lengths)).value();
      EXPECT_LE(ours.makespan_ns, paper.makespan_ns) << paper.strategy << ", seed " << seed;
    }
  }
}

TEST(HdpPipeline, NothingToDoIsAPlanToo) {
  const StepPlan plan = planned({.stages = 3, .ranks = 2, .lengths = {}});
  expect_sound_pipelines(plan);
  EXPECT_EQ(plan.makespan_ns, 0U);
}

/// Every way to part a few short samples into packs, to lay those onto ranks, and to order them.
class EveryPipelineOrder {
 public:
  EveryPipelineOrder(const PipelineCosts& pipeline, const HdpCosts& costs, Lengths lengths)
      : pipeline_(pipeline), costs_(costs), lengths_(std::move(lengths)) {}

  std::uint64_t best_ns() {
    part(0);
    return best_ns_;
  }

 private:
  void part(std::size_t sample) {
    if (sample == lengths_.size()) return place();
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      packs_[i].push_back(lengths_[sample]);
      part(sample + 1);
      packs_[i].pop_back();
    }
    packs_.push_back({lengths_[sample]});
    part(sample + 1);
    packs_.pop_back();
  }

  void place() {
    std::vector<PhaseTimes> phases;
    for (const Lengths& pack : packs_) {
      std::uint64_t attention_ns = 0, forward_ns = 0;
      std::uint32_t tokens = 0;
      for (const std::uint32_t length : pack) {
        attention_ns += costs_.attention_ns(length);
        forward_ns += pipeline_.attention_forward_ns(length);
        tokens += length;
      }
      if (tokens > costs_.shape().capacity_tokens) return;
      phases.push_back(pipeline_.pack(costs_, attention_ns, forward_ns, tokens));
    }
    std::vector<std::size_t> order(phases.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      for (std::uint64_t ways = 0; ways < 1U << order.size(); ++ways) try_on(phases, order, ways);
    } while (std::ranges::next_permutation(order).found);
  }

  void try_on(const std::vector<PhaseTimes>& phases, const std::vector<std::size_t>& order,
              std::uint64_t ways) {
    if (costs_.shape().ranks == 1 && ways > 0) return;
    PipelineTasks tasks(costs_.shape().ranks);
    for (const std::size_t pack : order) {
      const HdpRank rank(static_cast<std::uint32_t>(ways >> pack & 1));
      tasks.add(std::span(&rank, 1), {}, phases[pack]);
    }
    best_ns_ = std::min(best_ns_, tasks.ends(pipeline_.stages()).makespan_ns);
  }

  const PipelineCosts& pipeline_;
  const HdpCosts& costs_;
  const Lengths lengths_;
  std::vector<Lengths> packs_;
  std::uint64_t best_ns_ = UINT64_MAX;
};

TEST(HdpPipeline, OfAHandfulIsCloseToTheBestOfAllOrders) {
  Random random(5);
  std::uint64_t ours_sum = 0, best_sum = 0;
  for (int i = 0; i < 60; ++i) {
    const auto stages = static_cast<std::uint32_t>(2 + random.below(3));
    const auto ranks = static_cast<std::uint32_t>(1 + random.below(2));
    Lengths lengths(1 + random.below(5));
    for (std::uint32_t& length : lengths) {
      length = static_cast<std::uint32_t>(1 + random.below(random.below(2) == 0 ? 8192 : 2000));
    }
    const StepPlan plan = planned({.stages = stages, .ranks = ranks, .lengths = lengths});
    expect_sound_pipelines(plan);
    const HdpCosts costs = HdpCosts::create(costs_of_test(), {.ranks = ranks}).value();
    const PipelineCosts pipeline(costs_of_test(), stages);
    const std::uint64_t best =
        EveryPipelineOrder(pipeline, costs, lengths).best_ns() * pipeline.stage_layers();
    EXPECT_LE(plan.lower_bound_ns, best) << "case " << i;
    EXPECT_GE(plan.makespan_ns, best) << "case " << i;
    EXPECT_LE(plan.makespan_ns, best / 100 * 105) << "case " << i;
    ours_sum += plan.makespan_ns;
    best_sum += best;
  }
  EXPECT_LE(ours_sum, best_sum / 1000 * 1005);
}

/// The walk in step and the one that follows any events.
RC_GTEST_PROP(PipelineTasks, EndsAreThoseOfTheWalk, ()) {
  const auto ranks = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto stages = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto count = *rc::gen::inRange<std::size_t>(0, 15);
  PipelineTasks tasks(ranks);
  std::vector<std::vector<std::uint32_t>> members;
  std::vector<PhaseTimes> phases;
  std::vector<std::uint32_t> slots, next(ranks, 0);
  std::vector<PhaseTimes> of_rank_0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto set = *rc::gen::inRange<std::uint32_t>(1, 1U << ranks);
    std::vector<HdpRank> hdp_ranks;
    members.emplace_back();
    std::uint32_t slot = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      if ((set >> rank & 1) == 0) continue;
      hdp_ranks.emplace_back(rank);
      members.back().push_back(rank);
      slot = std::max(slot, next[rank]);
    }
    for (const std::uint32_t rank : members.back()) next[rank] = slot + 1;
    slots.push_back(slot);
    phases.push_back(
        {*rc::gen::inRange<std::uint64_t>(0, 50), *rc::gen::inRange<std::uint64_t>(0, 50)});
    if (set & 1) of_rank_0.push_back(phases.back());
    tasks.add(hdp_ranks, {}, phases.back());
  }
  std::vector<PipelineTask> walked;
  for (std::size_t i = 0; i < count; ++i) {
    walked.push_back({members[i], slots[i], phases[i].forward_ns, phases[i].backward_ns});
  }
  const PipelineEnds ends = tasks.ends(stages);
  RC_ASSERT(ends.makespan_ns == time_of_pipeline(walked, ranks, stages)->makespan_ns);
  if (ranks == 1) RC_ASSERT(LonePipeline(stages).end_ns(of_rank_0) == ends.makespan_ns);
}

RC_GTEST_PROP(PaperBalance, IsSoundForAnyLengths, ()) {
  DrawnStep step = drawn_step();
  step.stages = *rc::gen::inRange<std::uint32_t>(1, 6);
  const PaperBalanceOptions options{.offload = *rc::gen::arbitrary<bool>(),
                                    .buckets = *rc::gen::inRange<std::uint32_t>(1, 9),
                                    .delta_mill = *rc::gen::inRange<std::uint32_t>(0, 200)};
  for (const auto plan_paper : {plan_dp_balance, plan_pp_balance}) {
    const auto plan = plan_paper(costs_of_test(), pipelines(step.stages, step.ranks), options,
                                 samples_of(step.lengths));
    RC_ASSERT(plan.is_ok());
    expect_sound_pipelines(*plan);
  }
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(PaperBalance, TakesTheFewestRanks) {
  const auto samples = samples_of(Lengths{100'000, 9'000, 500, 7'692});
  const StepPlan plan = plan_dp_balance(costs_of_test(), pipelines(1, 16), {}, samples).value();
  ASSERT_EQ(plan.tasks.size(), 3U);
  std::vector<std::uint32_t> degrees;
  for (const model::Task& task : plan.tasks) degrees.push_back(task.members.size());
  std::ranges::sort(degrees);
  EXPECT_EQ(degrees, (std::vector<std::uint32_t>{1, 2, 13})) << "500 and 7,692 fill one rank";
}

TEST(PaperBalance, WithActivationsOnTheHostTakesFewer) {
  const auto samples = samples_of(Lengths{1'000'000});
  const StepPlan plan =
      plan_pp_balance(costs_of_test(), pipelines(4, 16), {.offload = true}, samples).value();
  EXPECT_EQ(plan.tasks[0].members.size(), 8U) << "2 x 1,000,000 / (32 x 8,192)";
  EXPECT_GT(plan.tasks[0].offload, model::OffloadRatio(60'000));
  const auto refused = plan_pp_balance(costs_of_test(), pipelines(4, 16), {}, samples);
  EXPECT_EQ(refused.status().message(),
            "sample 0:0:0:0 of 1000000 tokens needs 123 ranks of 8192 tokens and there are 16; "
            "raise the capacity, allow activations on the host, or cut samples at fewer tokens "
            "(max_sample_tokens)");
}

TEST(PaperBalance, KeepsWholeTokensOfOddNumbersOfLayers) {
  CostModel costs = costs_of_test();
  costs.layers = 3;
  costs.activation_bytes_per_token = 1;  // Copies are hidden, whatever is copied.
  const PaperBalanceOptions options{.capacity_tokens = 5, .offload = true};
  const auto plan = plan_dp_balance(costs, pipelines(1, 4), options, samples_of(Lengths{15}));
  ASSERT_EQ(plan.status().to_string(), "ok");
  EXPECT_EQ(plan->tasks[0].members.size(), 3U) << "of 2 ranks, one would hold 8 and not 7.5";
  const Status checked =
      model::check_plan(*plan, {.capacity = model::Capacity{.tokens = 5, .layers = 3}});
  EXPECT_EQ(checked.to_string(), "ok");
}

TEST(PaperBalance, RefusesOptionsThatAreNone) {
  const auto topology = pipelines(1, 2);
  EXPECT_TRUE(
      plan_dp_balance(costs_of_test(), topology, {.buckets = 0}, {}).is(ErrorKind::kInvalid));
  EXPECT_TRUE(plan_dp_balance(costs_of_test(), topology, {.capacity_tokens = 0}, {})
                  .is(ErrorKind::kInvalid));
  EXPECT_EQ(
      plan_dp_balance(costs_of_test(), topology, {}, samples_of(Lengths{5, 0})).status().message(),
      "sample 0:0:1:0 has no tokens");
}

}  // namespace
}  // namespace batchloom::planning
