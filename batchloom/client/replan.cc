// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/replan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model_toml.h"
#include "batchloom/planning/strategies.h"

namespace batchloom::client {
namespace {

using model::StepPlan;

constexpr std::string_view kDefaultStrategy = "lpt";
constexpr std::string_view kDefaultCosts = "h200-llama7b";

bool is_in(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const planning::Strategy& strategy_of(const StepPlan& stored) {
  const auto stored_one = planning::find_strategy(stored.strategy);
  return stored_one.is_ok() ? **stored_one : **planning::find_strategy(kDefaultStrategy);
}

std::uint32_t capacity_of(const StoredStep& stored) {
  if (stored.origin.capacity_tokens != 0) return stored.origin.capacity_tokens;
  const StepPlan& plan = stored.indexed.plan;
  std::uint32_t fullest = 1;
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t tokens = 0;
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
    fullest = std::max(fullest, tokens);
  }
  return fullest;
}

/// Plans are made in the order of the samples' ids; a step keeps the order in which it was stored.
void restore_order(const std::vector<model::PlanSample>& stored, StepPlan& plan) {
  std::vector<std::uint32_t> places(stored.size());
  std::iota(places.begin(), places.end(), 0U);
  std::ranges::sort(places, {}, [&](std::uint32_t place) { return stored[place].id; });
  for (model::Piece& piece : plan.pieces) {
    piece.sample = model::SampleIndex(places[piece.sample.value]);
  }
  plan.samples = stored;
  plan.digest = model::plan_digest(plan);
}

}  // namespace

Result<planning::CostModel> Replanner::costs_of(const store::BatchOrigin& origin) {
  if (cached_ && cached_->name == origin.cost_model && cached_->table == origin.cost_table) {
    return cached_->costs;
  }
  const bool is_builtin = is_in(planning::builtin_cost_model_names(), origin.cost_model);
  const std::string_view name = is_builtin ? std::string_view(origin.cost_model) : kDefaultCosts;
  BL_ASSIGN_OR_RETURN(
      planning::CostModel costs,
      origin.cost_table.empty()
          ? planning::builtin_cost_model(name)
          : planning::parse_cost_model(as_text(origin.cost_table), origin.cost_model));
  cached_ = {.name = origin.cost_model, .table = origin.cost_table, .costs = costs};
  return costs;
}

Status Replanner::check_longest(const StoredStep& stored, std::uint32_t capacity_tokens) const {
  const std::uint32_t tokens = stored.origin.max_sample_tokens;
  const planning::Strategy& strategy = strategy_of(stored.indexed.plan);
  const std::uint64_t ranks = planning::ranks_of_a_sample(topology_, strategy.spread);
  if (tokens <= ranks * capacity_tokens) return Status::ok();
  return Status::does_not_fit(fmt::format(
      "samples of the stream may have {} tokens (max_sample_tokens), and {} on {} has room for {}: "
      "{} {} of capacity {}; use more ranks{}",
      tokens, strategy.name, to_string(topology_), ranks * capacity_tokens, ranks,
      ranks == 1 ? "rank" : "ranks", capacity_tokens,
      strategy.spread == planning::Spread::kHdp ? "" : " along cp"));
}

Result<StepPlan> Replanner::plan(const StoredStep& stored) {
  BL_ASSIGN_OR_RETURN(planning::CostModel costs, costs_of(stored.origin));
  planning::StrategyInputs inputs{
      .costs = std::move(costs), .topology = topology_, .capacity_tokens = capacity_of(stored)};
  BL_RETURN_IF_ERROR(check_longest(stored, inputs.capacity_tokens));
  if (stored.origin.min_share_tokens != 0) inputs.min_share_tokens = stored.origin.min_share_tokens;
  inputs.offload = stored.origin.offload;
  const StepPlan& before = stored.indexed.plan;
  BL_ASSIGN_OR_RETURN(StepPlan plan, strategy_of(before).plan(inputs, before.samples));
  restore_order(before.samples, plan);
  return plan;
}

Status admit_whole_samples(const StoredStep& stored) {
  const planning::Strategy& strategy = strategy_of(stored.indexed.plan);
  if (strategy.spread != planning::Spread::kHdp) return Status::ok();
  return {ErrorKind::kInvalid,
          fmt::format("step {} is balanced by {}: samples may lie on several ranks, of which each "
                      "runs micro-batches of its own number: take split samples and train by "
                      "rings, or produce with a balance that keeps them whole",
                      stored.step.value, strategy.name),
          ErrorCase::kSplitSamples};
}

PlanStep plan_for(model::Topology topology) {
  auto replanner = std::make_shared<Replanner>(std::move(topology));
  return [replanner](const StoredStep& stored) { return replanner->plan(stored); };
}

}  // namespace batchloom::client
