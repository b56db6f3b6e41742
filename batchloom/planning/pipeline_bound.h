// SPDX-License-Identifier: Apache-2.0
// What no plan by hdp_problem.h's rules can beat whose ranks are pipelines of P equal stages.
//
//   work     w + (P - 1) x m   w: the work bound of hdp_problem.h, on one stage. Some rank has at
//                              least w to do on its last stage; that begins once its first
//                              micro-batch has gone forward through the P - 1 stages before, and
//                              its last one then goes backward through them. m: the least that a
//                              micro-batch of this step can take forward, and backward, on a stage,
//                              whatever runs with it and on however many ranks.
//   longest  P x t             t: the longest bound of hdp_problem.h, on one stage: each sample
//                              passes through all stages.
//
// (With the mean micro-batch in m's place it would be no bound: short ones may go first and last.
// The sum is the mean over ranks, which holds for every plan, and not that of one plan's slowest
// rank.)
#pragma once

#include <vector>

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/pipeline_costs.h"
#include "batchloom/planning/plan_draft.h"

namespace batchloom::planning {

/// Of one layer.
struct PipelineBound {
  std::uint64_t work_ns = 0;
  std::uint64_t longest_ns = 0;

  std::uint64_t lower_bound_ns() const { return std::max(work_ns, longest_ns); }
};

/// With one stage, the bounds of the problem.
PipelineBound pipeline_bound(const PipelineCosts& pipeline, const HdpCosts& costs,
                             const HdpProblem& problem);

/// By n, up to the capacity: the least that a micro-batch of n tokens or more takes in each phase,
/// without its attention. (More tokens may take less: by rounding, or by a curve that says so.) The
/// first is that of 1 token.
std::vector<PhaseTimes> least_phases_from(const PipelineCosts& pipeline, const HdpCosts& costs);

/// As the bound of a draft of one layer.
void state_bound(const PipelineBound& bound, PlanDraft& draft);

}  // namespace batchloom::planning
