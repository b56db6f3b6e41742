// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/graph_layout.h"

#include <string_view>
#include <utility>

#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategies.h"
#include "batchloom/planning/two_module.h"

namespace batchloom::planning {
namespace {

/// Without pictures, two_module is two_level.
std::string_view strategy_of(Balance balance) {
  return to_string(balance == Balance::kTwoModule ? Balance::kTwoLevel : balance);
}

}  // namespace

Spread spread_of(Balance balance) {
  return (*find_strategy(strategy_of(balance)))->spread;
}

Result<model::StepPlan> lay_out_text(const SelectionSpec& text, const model::Topology& topology,
                                     const std::vector<model::SampleMeta>& members) {
  return plan_with(strategy_of(*text.balance),
                   {.costs = *text.cost,
                    .topology = topology,
                    .capacity_tokens = text.options.capacity_tokens,
                    .min_share_tokens = text.options.min_share_tokens,
                    .offload = text.options.offload},
                   plan_samples_of(members));
}

Result<GraphPlan> lay_out(const GraphSpec& graph, const model::Topology& topology,
                          std::vector<model::SampleMeta> members) {
  BL_RETURN_IF_ERROR(to_status(graph, find_faults(graph)));
  BL_RETURN_IF_ERROR(to_status(graph, find_layout_faults(topology, graph)));
  BL_RETURN_IF_ERROR(sort_by_id(members));
  const SelectionSpec& text = *graph.find(Modality::kText);
  const SelectionSpec* image = graph.find(Modality::kImage);
  PlaceTree::Options where;
  where.topology = topology;
  where.broadcast = text.broadcast_at;
  BL_ASSIGN_OR_RETURN(PlaceTree places, PlaceTree::create(std::move(where)));
  if (*text.balance == Balance::kTwoModule) {
    TwoModuleOptions options;
    options.capacity_tokens = text.options.capacity_tokens;
    options.pictures = *image->distribute;
    BL_ASSIGN_OR_RETURN(TwoModulePlan both, plan_two_module(*image->cost, *text.cost, topology,
                                                            options, std::move(members)));
    return GraphPlan{std::move(both.plan), std::move(both.pictures), std::move(places)};
  }
  BL_ASSIGN_OR_RETURN(model::StepPlan plan, lay_out_text(text, topology, members));
  GraphPlan result{std::move(plan), {}, std::move(places)};
  if (image != nullptr) {
    BL_ASSIGN_OR_RETURN(result.pictures, assign_pictures(*image->cost, topology, *image->distribute,
                                                         *image->balance, members));
  }
  return result;
}

}  // namespace batchloom::planning
