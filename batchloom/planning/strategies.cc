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

struct Strategy {
  std::string_view name;
  Result<model::StepPlan> (*plan)(const StrategyInputs&, StepSamples);
};

constexpr Strategy kStrategies[] = {
    {"static_cp", plan_static_cp},
    {"naive_hdp", plan_naive_hdp},
    {"megatron", plan_megatron},
    {"verl_kk", plan_verl_kk},
    {"none", grouped_with<GroupedBalance::kNone>},
    {"lpt", grouped_with<GroupedBalance::kLpt>},
    {"kk", grouped_with<GroupedBalance::kKarmarkarKarp>},
    {"two_level", grouped_with<GroupedBalance::kTwoLevel>},
    {"dp_balance", paper_balance_with<plan_dp_balance>},
    {"pp_balance", paper_balance_with<plan_pp_balance>},
    {"hdp", hdp_with},
};

}  // namespace

std::vector<std::string_view> strategy_names() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : kStrategies) names.push_back(strategy.name);
  return names;
}

Result<model::StepPlan> plan_with(std::string_view strategy, const StrategyInputs& inputs,
                                  std::vector<model::PlanSample> samples) {
  const auto* const found = std::ranges::find(kStrategies, strategy, &Strategy::name);
  if (found == std::end(kStrategies)) {
    return Status::invalid(fmt::format("no strategy is called {:?}; there are {}", strategy,
                                       fmt::join(strategy_names(), ", ")));
  }
  return found->plan(inputs, std::move(samples));
}

}  // namespace batchloom::planning
