// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/strategies.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/baselines.h"
#include "batchloom/planning/grouped.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/paper_balance.h"

namespace batchloom::planning {
namespace {

using StepSamples = std::vector<model::PlanSample>;

template <GroupedBalance Balance>
Result<model::StepPlan> grouped_with(const StrategyInputs& inputs, StepSamples samples) {
  return plan_grouped(inputs.costs, inputs.topology,
                      {.balance = Balance, .capacity_tokens = inputs.capacity_tokens},
                      std::move(samples));
}

Result<model::StepPlan> hdp_with(const StrategyInputs& inputs, StepSamples samples) {
  BL_ASSIGN_OR_RETURN(const HdpPlanner planner,
                      HdpPlanner::create(inputs.costs, inputs.topology,
                                         {.capacity_tokens = inputs.capacity_tokens,
                                          .min_share_tokens = inputs.min_share_tokens,
                                          .offload = inputs.offload,
                                          .ring = !inputs.topology.levels().empty()}));
  return planner.plan(std::move(samples));
}

template <auto kPlan>
Result<model::StepPlan> paper_balance_with(const StrategyInputs& inputs, StepSamples samples) {
  return kPlan(inputs.costs, inputs.topology,
               PaperBalanceOptions{.capacity_tokens = inputs.capacity_tokens,
                                   .min_share_tokens = inputs.min_share_tokens,
                                   .offload = inputs.offload},
               std::move(samples));
}

constexpr auto kOurs = StrategyKind::kOurs;
constexpr auto kBaseline = StrategyKind::kBaseline;
constexpr StrategyTakes kNothing;
constexpr StrategyTakes kContext{.context = true};
constexpr StrategyTakes kOffload{.offload = true};
constexpr StrategyTakes kShareAndOffload{.min_share = true, .offload = true};
constexpr StrategyTakes kAllOfHdp{.min_share = true, .offload = true, .levels = true};

constexpr Strategy kStrategies[] = {
    {"static_cp", kBaseline, Spread::kDp, kContext, plan_static_cp},
    {"naive_hdp", kBaseline, Spread::kHdp, kOffload, plan_naive_hdp},
    {"megatron", kBaseline, Spread::kHdp, kNothing, plan_megatron},
    {"verl_kk", kBaseline, Spread::kDp, kContext, plan_verl_kk},
    {"none", kOurs, Spread::kDp, kNothing, grouped_with<GroupedBalance::kNone>},
    {"lpt", kOurs, Spread::kDp, kNothing, grouped_with<GroupedBalance::kLpt>},
    {"kk", kOurs, Spread::kDp, kNothing, grouped_with<GroupedBalance::kKarmarkarKarp>},
    {"two_level", kOurs, Spread::kDp, kNothing, grouped_with<GroupedBalance::kTwoLevel>},
    {"dp_balance", kBaseline, Spread::kHdp, kShareAndOffload, paper_balance_with<plan_dp_balance>},
    {"pp_balance", kBaseline, Spread::kHdp, kShareAndOffload, paper_balance_with<plan_pp_balance>},
    {"hdp", kOurs, Spread::kHdp, kAllOfHdp, hdp_with},
};

}  // namespace

std::span<const Strategy> strategies() {
  return kStrategies;
}

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : kStrategies) names.push_back(strategy.name);
  return names;
}

Result<const Strategy*> find_strategy(std::string_view name) {
  const auto* const found = std::ranges::find(kStrategies, name, &Strategy::name);
  if (found != std::end(kStrategies)) return found;
  return Status::invalid(fmt::format("no strategy is called '{}'; there are {}", name,
                                     fmt::join(strategy_names(), ", ")));
}

Result<model::StepPlan> plan_with(std::string_view strategy, const StrategyInputs& inputs,
                                  std::vector<model::PlanSample> samples) {
  BL_ASSIGN_OR_RETURN(const Strategy* const found, find_strategy(strategy));
  return found->plan(inputs, std::move(samples));
}

std::uint32_t ranks_of_a_sample(const model::Topology& topology, Spread spread) {
  return spread == Spread::kHdp ? topology.hdp_size() : topology.extent(model::Axis::kCp);
}

}  // namespace batchloom::planning
