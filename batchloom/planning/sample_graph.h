// SPDX-License-Identifier: Apache-2.0
// How a step is put together and laid out, said in a few lines:
//
//   auto graph = SampleGraph(metadata).mix(schedule);
//   graph.select(Modality::kImage).distribute(Spread::kWorld).cost(vit).balance(Balance::kLpt);
//   graph.select(Modality::kText).distribute(Spread::kHdp).cost(llm).balance(Balance::kHdp)
//       .broadcast_at(model::Axis::kTp);
//   const Result<GraphPlan> plan = graph.plan(topology);
//
//   mix           which samples the step has. Nothing that follows changes that.
//   select        whose arrangement follows: the tokens of all samples, or their pictures.
//   distribute    among whom: groups along dp, HDP ranks, or all ranks.
//   cost          what work takes.
//   balance       how it is evened out. It only arranges: no sample is left out or put off.
//   broadcast_at  along which axes the trainer passes tokens on, so that one rank fetches for all.
//   plan          all faults of the calls above at once, or the plan of one step.
//
// Step after step from a state: planner.h. The same from a file: sample_graph_toml.h. The
// primitives are those of MegaScale-Data (arXiv 2504.09844).
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/planning/graph_check.h"
#include "batchloom/planning/graph_layout.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"

namespace batchloom::planning {

/// What is said of one modality. Each call once, but broadcast_at() once per axis; in any order.
/// One thread at a time.
class Selection {
 public:
  explicit Selection(Modality modality) { spec_.modality = modality; }

  Selection& distribute(Spread spread);
  Selection& cost(CostModel model);
  /// A model that comes with Batchloom, by name (builtin_costs.h).
  Selection& cost(std::string_view builtin);
  Selection& balance(Balance balance, TokenOptions options = {});
  Selection& broadcast_at(model::Axis axis);

  const SelectionSpec& spec() const { return spec_; }

 private:
  friend class SampleGraph;

  /// Notes a fault where something was `said` before.
  void once(bool said, GraphCall call);

  SelectionSpec spec_;
  GraphFaults faults_;  ///< Of the calls themselves.
};

/// A builder; it copies. One thread at a time.
class SampleGraph {
 public:
  /// Of a step whose members are given.
  explicit SampleGraph(std::vector<model::SampleMeta> members) : members_(std::move(members)) {}
  /// Of steps that mix() draws. `metadata` must outlive plan().
  explicit SampleGraph(Metadata& metadata) : metadata_(&metadata) {}

  SampleGraph& mix(MixSpec schedule) &;
  SampleGraph mix(MixSpec schedule) && { return std::move(mix(std::move(schedule))); }

  /// Valid as long as the graph, which does not move it.
  Selection& select(Modality modality) { return selections_.emplace_back(modality); }

  /// What was said so far.
  GraphSpec spec() const;

  /// The plan of the members, or of the first step that the mixture draws. Pure. `invalid`: all
  /// faults of the calls, each with the call; a selection that finds nothing; as lay_out() and
  /// Mixture.
  Result<GraphPlan> plan(const model::Topology& topology) const;

 private:
  GraphFaults faults(const GraphSpec& graph) const;
  Result<std::vector<model::SampleMeta>> members(const GraphSpec& graph) const;

  Metadata* metadata_ = nullptr;
  std::vector<model::SampleMeta> members_;
  std::optional<MixSpec> mix_;
  GraphFaults mix_faults_;
  std::deque<Selection> selections_;
};

}  // namespace batchloom::planning
