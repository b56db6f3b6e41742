// SPDX-License-Identifier: Apache-2.0
// DP-Balance and PP-Balance, the published rules for hybrid data parallelism, as baselines
// (ByteScale, arXiv 2502.21231, algorithm 2). docs/design/0006-baselines.md says what the paper
// leaves open and what was chosen.
//
//  1. Each sample that one rank cannot hold takes the fewest ranks: ceil(s / C), or by equation 3
//     with activations on the host. The others are packed, best-fit, up to the capacity.
//  2. Sequences and packs by descending tokens, in buckets of nearly equal work.
//  3. Rounds: the target is all ranks that lag behind the last one by more than delta; all of them
//     where none does. Each target rank gets one micro-batch, those first that lag most:
//       DP-Balance takes from the first bucket, PP-Balance in turn from all of them.
//     A sequence of d ranks goes to the next d of the target; where fewer are left, to those too
//     that have least to do.
#pragma once

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

struct PaperBalanceOptions {
  std::uint32_t capacity_tokens = 8192;
  /// Of the bound that the plan states, not of the rule: the smallest share of a ring whose
  /// exchange hides behind its computing.
  std::uint32_t min_share_tokens = 4096;
  /// Equation 3: as few ranks as activations on the host allow. Fewer ranks for long samples, which
  /// then hold up the step: the plan is the slower for it where computing binds.
  bool offload = false;
  std::uint32_t buckets = 2;
  std::uint32_t delta_mill = 50;  ///< Of the time of the last rank, in 1/1,000.
};

/// Pure: samples in any order give the same bytes. The makespan is that of computing alone, with
/// pipeline stages by the 1F1B schedule (pipeline_time.h). `invalid`: an option that is 0 (delta
/// may be), a sample without tokens, one given twice, or one that fits on no number of ranks.
Result<model::StepPlan> plan_dp_balance(const CostModel& model, const model::Topology& topology,
                                        const PaperBalanceOptions& options,
                                        std::vector<model::PlanSample> samples);
Result<model::StepPlan> plan_pp_balance(const CostModel& model, const model::Topology& topology,
                                        const PaperBalanceOptions& options,
                                        std::vector<model::PlanSample> samples);

}  // namespace batchloom::planning
