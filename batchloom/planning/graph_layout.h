// SPDX-License-Identifier: Apache-2.0
// From what a graph says to a plan: members are given, and only arranged.
#pragma once

#include <optional>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/model/topology.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/pictures.h"
#include "batchloom/planning/place_tree.h"

namespace batchloom::planning {

/// How one step is laid out.
struct GraphPlan {
  model::StepPlan plan;                       ///< Of tokens.
  std::optional<PictureAssignment> pictures;  ///< Where pictures are selected.
  PlaceTree places;                           ///< Who reads what of it, and who is fed.
};

/// Pure: members in any order give the same bytes. A step in which nothing has a picture is no
/// error. `invalid`: what find_faults() and find_layout_faults() find, and members that the balance
/// refuses: one given twice, without tokens, or too long. With hdp the exchange of rings counts
/// where the topology has levels that say how fast it is.
Result<GraphPlan> lay_out(const GraphSpec& graph, const model::Topology& topology,
                          std::vector<model::SampleMeta> members);

/// What text must be distributed along, where cp has several ranks: as its strategy spreads tokens,
/// and along dp by two_module.
Spread spread_of(Balance balance);

/// Tokens alone, by the strategy of the balance's name; by two_level where that is two_module.
/// Precondition: the selection is one of text without faults.
Result<model::StepPlan> lay_out_text(const SelectionSpec& text, const model::Topology& topology,
                                     const std::vector<model::SampleMeta>& members);

}  // namespace batchloom::planning
