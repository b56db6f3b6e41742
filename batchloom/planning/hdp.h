// SPDX-License-Identifier: Apache-2.0
// Hybrid data parallelism: a step's samples onto HDP ranks, each on as many as suits it, so that
// all ranks end together.
//
//   const auto planner = HdpPlanner::create(costs, topology, {}).value();
//   const model::StepPlan plan = planner.plan(samples).value();
//
// It is gang scheduling of moldable tasks. The plan states its makespan, a lower bound and thereby
// the gap. The bound is one of plans that keep samples of up to the capacity whole and lay longer
// ones on numbers of ranks that HdpCosts::degrees() allows (hdp_problem.h); plans by other rules
// may end earlier. How it works: gang_placement.h, rank_loads.h, load_repair.h, in this order;
// where the topology has pipeline stages, hdp_pipeline.h. Where ByteScale's own assignment
// (naive_hdp.h) ends earlier, it is the plan.
#pragma once

#include <optional>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/hdp_costs.h"
#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/pipeline_costs.h"
#include "batchloom/planning/rank_levels.h"

namespace batchloom::planning {

struct HdpOptions {
  std::uint32_t capacity_tokens = 8192;
  std::uint32_t min_share_tokens = 4096;
  /// Activations on the host, for samples that fit on no number of ranks otherwise.
  bool offload = true;
  /// And for any other long sample, where the step ends earlier by that. Costs a second planning.
  bool offload_where_earlier = false;
  /// The exchange of rings counts, in makespan and bound, through the links of the topology's
  /// levels. Off: computing alone, as if it always hid.
  bool ring = false;
};

/// Immutable; thread-safe.
class HdpPlanner {
 public:
  /// `invalid` for options with a zero, and for rings over a topology without levels.
  static Result<HdpPlanner> create(const CostModel& model, model::Topology topology,
                                   const HdpOptions& options);

  /// Pure: the same samples, in any order, give the same bytes. Their order in the plan is that of
  /// their ids. `invalid`: a sample without tokens, one given twice, or one that fits on no number
  /// of ranks.
  Result<model::StepPlan> plan(std::vector<model::PlanSample> samples) const;

 private:
  HdpPlanner(const CostModel& model, HdpCosts costs, model::Topology topology)
      : model_(model),
        costs_(std::move(costs)),
        topology_(std::move(topology)),
        levels_(topology_),
        pipeline_(model, topology_.extent(model::Axis::kPp)) {}

  Result<HdpProblem> problem_of(const HdpCosts& costs,
                                const std::vector<model::PlanSample>& samples) const;
  /// Without pipeline stages.
  Result<model::StepPlan> plan_flat(const HdpProblem& problem,
                                    std::vector<model::PlanSample> samples) const;
  Result<model::StepPlan> plan_stages(const HdpProblem& problem,
                                      std::vector<model::PlanSample> samples) const;
  /// Puts ByteScale's own assignment in the place of a plan that ends later.
  Status outdo_naive(const HdpProblem& problem, model::StepPlan& plan) const;
  /// States the bound of plans that may copy any long sample's activations to the host.
  Status bound_with_offload(model::StepPlan& plan) const;

  CostModel model_;
  HdpCosts costs_;
  std::optional<HdpCosts> without_offload_;  ///< Where offload is a choice: without it.
  model::Topology topology_;
  RankLevels levels_;
  PipelineCosts pipeline_;
};

}  // namespace batchloom::planning
