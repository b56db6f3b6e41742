// SPDX-License-Identifier: Apache-2.0
// What is wrong with a sample graph: all of it at once, each fault with the place where it was
// said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/topology.h"
#include "batchloom/planning/graph_spec.h"

namespace batchloom::planning {

/// Which part of a graph.
enum class GraphCall : std::uint8_t {
  kGraph,
  kMix,
  kSelect,
  kDistribute,
  kCost,
  kBalance,
  kBroadcastAt,
};

struct GraphFault {
  GraphCall call = GraphCall::kGraph;
  std::optional<std::size_t> selection = {};  ///< A place in GraphSpec::selections.
  std::optional<std::size_t> source = {};     ///< A place in MixSpec::sources.
  std::string reason;                         ///< What is wrong, and what would not be.
};
using GraphFaults = std::vector<GraphFault>;

/// What is wrong on every topology:
///
///   selections     none of text; a modality twice; one without distribute, cost or balance
///   text           along world, where ranks along tp and pp need the same tokens; a cost model
///                  without times for tokens; a capacity or least share of 0; a broadcast along dp
///                  or cp, or twice along one axis
///   image          two_level and hdp, which pack or cut; a cost model without times for pictures;
///                  options of tokens; a broadcast
///   two_module     for one selection only; text elsewhere than along dp, pictures along hdp
///   mix            limits exceeded (check_config), a source named twice
GraphFaults find_faults(const GraphSpec& graph);

/// What is wrong with the selections on this topology: hdp lays out over dp and cp, the other
/// balances over groups along dp, so that text must be distributed alike. Where cp has one rank,
/// both are the same. Precondition: no fault on every topology.
GraphFaults find_layout_faults(const model::Topology& topology, const GraphSpec& graph);

/// The same, and whether a part of max_sample_tokens fits, which takes the planning of one: to be
/// asked before a run. Precondition: no fault on every topology.
GraphFaults find_faults_on(const model::Topology& topology, const GraphSpec& graph);

/// The place as it is written in C++: "select(image).balance(hdp)".
std::string call_of(const GraphSpec& graph, const GraphFault& fault);

/// Ok without faults, else `invalid` with all of them.
Status to_status(const GraphSpec& graph, const GraphFaults& faults);

}  // namespace batchloom::planning
