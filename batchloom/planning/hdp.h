// SPDX-License-Identifier: Apache-2.0
// Hybrid data parallelism: a step's samples onto HDP ranks, each on as many as suits it, so that
// all ranks end together.
//
//   const auto planner = HdpPlanner::create(costs, topology, {}).value();
//   const model::StepPlan plan = planner.plan(samples).value();
//
// It is gang scheduling of moldable tasks. The plan states the lower bound that no plan of the step
// can beat (hdp_problem.h), its own makespan, and thereby the gap. How it works: gang_placement.h,
// rank_loads.h, load_repair.h, in this order.
#pragma once

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/hdp_costs.h"

namespace batchloom::planning {

struct HdpOptions {
  std::uint32_t capacity_tokens = 8192;
  std::uint32_t min_share_tokens = 4096;
  bool offload = true;
};

/// Immutable; thread-safe.
class HdpPlanner {
 public:
  /// `invalid` for options with a zero.
  static Result<HdpPlanner> create(const CostModel& model, model::Topology topology,
                                   const HdpOptions& options);

  /// Pure: the same samples, in any order, give the same bytes. Their order in the plan is that of
  /// their ids. `invalid`: a sample without tokens, one given twice, or one that fits on no number
  /// of ranks.
  Result<model::StepPlan> plan(std::vector<model::PlanSample> samples) const;

 private:
  HdpPlanner(HdpCosts costs, model::Topology topology, std::uint32_t layers)
      : costs_(std::move(costs)), topology_(std::move(topology)), layers_(layers) {}

  HdpCosts costs_;
  model::Topology topology_;
  std::uint32_t layers_;
};

}  // namespace batchloom::planning
