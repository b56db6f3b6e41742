// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/graph_layout.h"

#include <utility>

#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/grouped.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/two_module.h"

namespace batchloom::planning {
namespace {

GroupedBalance grouped_balance(Balance balance) {
  switch (balance) {
    case Balance::kNone: return GroupedBalance::kNone;
    case Balance::kLpt: return GroupedBalance::kLpt;
    case Balance::kKarmarkarKarp: return GroupedBalance::kKarmarkarKarp;
    default: return GroupedBalance::kTwoLevel;
  }
}

}  // namespace

Result<model::StepPlan> lay_out_text(const SelectionSpec& text, const model::Topology& topology,
                                     const std::vector<model::SampleMeta>& members) {
  std::vector<model::PlanSample> samples = plan_samples_of(members);
  if (*text.balance == Balance::kHdp) {
    HdpOptions options;
    options.capacity_tokens = text.options.capacity_tokens;
    options.min_share_tokens = text.options.min_share_tokens;
    options.offload = text.options.offload;
    options.ring = !topology.levels().empty();
    BL_ASSIGN_OR_RETURN(const HdpPlanner planner,
                        HdpPlanner::create(*text.cost, topology, options));
    return planner.plan(std::move(samples));
  }
  GroupedOptions options;
  options.balance = grouped_balance(*text.balance);
  options.capacity_tokens = text.options.capacity_tokens;
  return plan_grouped(*text.cost, topology, options, std::move(samples));
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
