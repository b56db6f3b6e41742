// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/sample_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/planner.h"

namespace batchloom::planning {

void Selection::once(bool said, GraphCall call) {
  if (said) faults_.push_back({.call = call, .reason = "said twice; say it once"});
}

Selection& Selection::distribute(Spread spread) {
  once(spec_.distribute.has_value(), GraphCall::kDistribute);
  spec_.distribute = spread;
  return *this;
}

Selection& Selection::cost(CostModel model) {
  once(spec_.cost.has_value(), GraphCall::kCost);
  spec_.cost = std::move(model);
  return *this;
}

Selection& Selection::cost(std::string_view builtin) {
  Result<CostModel> model = builtin_cost_model(builtin);
  if (model.is_ok()) return cost(std::move(model).value());
  faults_.push_back({.call = GraphCall::kCost, .reason = std::string(model.status().message())});
  return *this;
}

Selection& Selection::balance(Balance balance, TokenOptions options) {
  once(spec_.balance.has_value(), GraphCall::kBalance);
  spec_.balance = balance;
  spec_.options = options;
  return *this;
}

Selection& Selection::broadcast_at(model::Axis axis) {
  spec_.broadcast_at.push_back(axis);
  return *this;
}

SampleGraph& SampleGraph::mix(MixSpec schedule) & {
  if (mix_) mix_faults_.push_back({.call = GraphCall::kMix, .reason = "said twice; say it once"});
  mix_ = std::move(schedule);
  return *this;
}

GraphSpec SampleGraph::spec() const {
  GraphSpec graph{.mix = mix_};
  for (const Selection& selection : selections_) graph.selections.push_back(selection.spec());
  return graph;
}

GraphFaults SampleGraph::faults(const GraphSpec& graph) const {
  GraphFaults faults = mix_faults_;
  if (metadata_ == nullptr && mix_) {
    faults.push_back({.call = GraphCall::kMix, .reason = "the step's members are given already"});
  }
  if (metadata_ != nullptr && !mix_) {
    faults.push_back({.call = GraphCall::kMix, .reason = "missing; it says what steps contain"});
  }
  for (std::size_t i = 0; i < selections_.size(); ++i) {
    for (GraphFault fault : selections_[i].faults_) {
      fault.selection = i;
      faults.push_back(std::move(fault));
    }
  }
  for (GraphFault& fault : find_faults(graph)) {
    // A call whose name was not found has not left a model: one fault is enough.
    const bool known = std::ranges::any_of(faults, [&](const GraphFault& other) {
      return other.call == fault.call && other.selection == fault.selection &&
             fault.call == GraphCall::kCost;
    });
    if (!known) faults.push_back(std::move(fault));
  }
  return faults;
}

Result<std::vector<model::SampleMeta>> SampleGraph::members(const GraphSpec& graph) const {
  if (metadata_ == nullptr) return members_;
  BL_ASSIGN_OR_RETURN(const PlannerState start, first_state(graph, *metadata_));
  BL_ASSIGN_OR_RETURN(std::optional<StepMembers> drawn, draw_step(graph, start, *metadata_));
  if (!drawn) return std::vector<model::SampleMeta>();
  return std::move(drawn->members);
}

Result<GraphPlan> SampleGraph::plan(const model::Topology& topology) const {
  const GraphSpec graph = spec();
  BL_RETURN_IF_ERROR(to_status(graph, faults(graph)));
  BL_RETURN_IF_ERROR(to_status(graph, find_faults_on(topology, graph)));
  BL_ASSIGN_OR_RETURN(std::vector<model::SampleMeta> step, members(graph));
  const bool has_pictures = std::ranges::any_of(
      step, [](const model::SampleMeta& sample) { return !sample.image_patches.empty(); });
  GraphFaults nothing;
  for (std::size_t i = 0; i < graph.selections.size(); ++i) {
    if (step.empty()) {
      nothing.push_back({.call = GraphCall::kSelect,
                         .selection = i,
                         .reason = "finds nothing: the step has no samples"});
    } else if (graph.selections[i].modality == Modality::kImage && !has_pictures) {
      nothing.push_back(
          {.call = GraphCall::kSelect,
           .selection = i,
           .reason = fmt::format("finds nothing: no sample of {} has a picture", step.size())});
    }
  }
  BL_RETURN_IF_ERROR(to_status(graph, nothing));
  return lay_out(graph, topology, std::move(step));
}

}  // namespace batchloom::planning
