// SPDX-License-Identifier: Apache-2.0
// The Planner: from a state, metadata and a topology to the plan of the next step and the state
// after it.
//
//   PlannerState state = first_state(graph, metadata).value();
//   while (auto step = plan_step(graph, state, metadata, topology).value()) {
//     ...                                      // step->layout.plan, step->members
//     state = step->next;
//   }
//
//  1. The mixture decides what the step contains. It knows neither topology nor balance.
//  2. The graph's selections decide who computes what of it. They change nothing of 1.
//  3. What is to be remembered is what the mixture remembers, and it is stored as that is
//     (mixture_state.h): the same state gives the same steps, on every host and any topology.
//
// Pure functions, as far as metadata answers alike: no clock, no thread, no file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/topology.h"
#include "batchloom/planning/graph_layout.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"
#include "batchloom/planning/mixture_state.h"

namespace batchloom::planning {

/// All that a planner must remember. A value; stored by encode_mixture_state().
struct PlannerState {
  MixtureState mixture;

  friend bool operator==(const PlannerState&, const PlannerState&) = default;
};

/// What a step contains, before anybody lays it out.
struct StepMembers {
  model::Step step;
  std::vector<model::SampleMeta> members;  ///< In the order in which they were drawn. Not empty.
  bool last = false;                       ///< The stream ends with it: it may be a short one.
  PlannerState next;
};

/// A step, and how it is laid out.
struct PlannedStep {
  model::Step step;
  std::vector<model::SampleMeta> members;  ///< By id, as the plan has them.
  GraphPlan layout;
  bool last = false;
  PlannerState next;
};

/// Before the first step. `invalid`: a graph without mix, or with faults that no topology helps
/// (find_faults); sources that do not match (mixture_config); as Mixture::create().
Result<PlannerState> first_state(const GraphSpec& graph, Metadata& metadata);

/// The members of the next step, or nothing when the stream has ended. Errors: as first_state(),
/// Mixture::resume() and Mixture::next_step(), and those of metadata.
Result<std::optional<StepMembers>> draw_step(const GraphSpec& graph, const PlannerState& state,
                                             Metadata& metadata);

/// The next step, or nothing when the stream has ended. Errors: as draw_step() and lay_out().
Result<std::optional<PlannedStep>> plan_step(const GraphSpec& graph, const PlannerState& state,
                                             Metadata& metadata, const model::Topology& topology);

/// A source's new weight, by its name.
struct NamedWeight {
  std::string name;
  Weight weight;
};

/// The state in which these sources have these weights from `from_step` on. `invalid`: a source
/// that does not exist; as Mixture::set_weights(). `exhausted`: too many updates wait.
Result<PlannerState> set_weights(const GraphSpec& graph, const PlannerState& state,
                                 Metadata& metadata, model::Step from_step,
                                 std::span<const NamedWeight> weights);

}  // namespace batchloom::planning
