// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/graph_mixture.h"
#include "batchloom/planning/mixture.h"
#include "batchloom/planning/plan_samples.h"

namespace batchloom::planning {
namespace {

Result<MixtureConfig> config_of(const GraphSpec& graph, const Metadata& metadata) {
  BL_RETURN_IF_ERROR(to_status(graph, find_faults(graph)));
  if (!graph.mix) {
    return Status::invalid("sample graph: mix: missing; it says what steps contain");
  }
  return mixture_config(*graph.mix, metadata.sources());
}

Result<std::unique_ptr<Mixture>> mixture_at(const GraphSpec& graph, const PlannerState& state,
                                            Metadata& metadata) {
  BL_ASSIGN_OR_RETURN(MixtureConfig config, config_of(graph, metadata));
  return Mixture::resume(std::move(config), state.mixture, metadata);
}

}  // namespace

Result<PlannerState> first_state(const GraphSpec& graph, Metadata& metadata) {
  BL_ASSIGN_OR_RETURN(MixtureConfig config, config_of(graph, metadata));
  BL_ASSIGN_OR_RETURN(const std::unique_ptr<Mixture> mixture,
                      Mixture::create(std::move(config), metadata));
  return PlannerState{mixture->state()};
}

Result<std::optional<StepMembers>> draw_step(const GraphSpec& graph, const PlannerState& state,
                                             Metadata& metadata) {
  BL_ASSIGN_OR_RETURN(const std::unique_ptr<Mixture> mixture, mixture_at(graph, state, metadata));
  BL_ASSIGN_OR_RETURN(const std::optional<MixtureStep> drawn, mixture->next_step());
  if (!drawn) return std::optional<StepMembers>();
  StepMembers step{.step = drawn->step, .members = {}, .last = drawn->last, .next = {}};
  step.members.reserve(drawn->parts.size());
  for (const Part& part : drawn->parts) {
    BL_ASSIGN_OR_RETURN(model::SampleMeta sample, metadata.describe(part));
    step.members.push_back(std::move(sample));
  }
  step.next.mixture = mixture->state();
  return std::optional<StepMembers>(std::move(step));
}

Result<std::optional<PlannedStep>> plan_step(const GraphSpec& graph, const PlannerState& state,
                                             Metadata& metadata, const model::Topology& topology) {
  BL_ASSIGN_OR_RETURN(std::optional<StepMembers> drawn, draw_step(graph, state, metadata));
  if (!drawn) return std::optional<PlannedStep>();
  BL_RETURN_IF_ERROR(sort_by_id(drawn->members));  // Once for all who want them so.
  BL_ASSIGN_OR_RETURN(GraphPlan layout, lay_out(graph, topology, drawn->members));
  return std::optional<PlannedStep>(PlannedStep{.step = drawn->step,
                                                .members = std::move(drawn->members),
                                                .layout = std::move(layout),
                                                .last = drawn->last,
                                                .next = std::move(drawn->next)});
}

Result<PlannerState> set_weights(const GraphSpec& graph, const PlannerState& state,
                                 Metadata& metadata, model::Step from_step,
                                 std::span<const NamedWeight> weights) {
  BL_ASSIGN_OR_RETURN(const std::unique_ptr<Mixture> mixture, mixture_at(graph, state, metadata));
  const std::span<const SourceRecords> sources = metadata.sources();
  std::vector<SourceWeight> by_id;
  for (const NamedWeight& weight : weights) {
    const auto found = std::ranges::find(sources, weight.name, &SourceRecords::name);
    if (found == sources.end()) {
      return Status::invalid(fmt::format("new weights: there is no source '{}'", weight.name));
    }
    const auto id = static_cast<std::uint32_t>(found - sources.begin());
    by_id.push_back({model::SourceId(id), weight.weight});
  }
  BL_RETURN_IF_ERROR(mixture->set_weights(from_step, by_id));
  return PlannerState{mixture->state()};
}

}  // namespace batchloom::planning
