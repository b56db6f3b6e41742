// SPDX-License-Identifier: Apache-2.0
// What a person wants to know of a plan: how good it is, what keeps it from being better, and what
// it is better than.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::planning {

/// How unevenly work lies on ranks: of the rank that has most, and of all.
struct LoadSpread {
  std::uint64_t largest_ns = 0;
  std::uint64_t mean_ns = 0;

  /// 1 is perfect; 1 where there is no work.
  double imbalance() const;
};

/// Times are of all layers of one pipeline stage, and of both phases.
struct PlanReport {
  std::uint64_t lower_bound_ns = 0;  ///< As the plan states it; 0 where it has none.
  model::BoundTerm bound_term = model::BoundTerm::kNone;
  std::uint64_t makespan_ns = 0;  ///< As the plan states it.
  std::uint64_t step_ns = 0;      ///< With links (step_time.h).

  std::uint64_t sample_tokens = 0;
  std::uint32_t longest_sample_tokens = 0;
  /// Computed though no sample has them: fillers, and where members of a ring hold fewer tokens
  /// than the one that holds most.
  std::uint64_t padding_tokens = 0;
  std::uint32_t largest_ring = 0;        ///< Members of the widest task.
  std::uint32_t micro_batches_most = 0;  ///< Of one rank.
  std::uint32_t offloading_tasks = 0;

  /// Before: samples are dealt in turn to the ranks, in the plan's order, each whole to one. After:
  /// what the plan makes of them, waiting for others aside.
  LoadSpread before;
  LoadSpread after;

  TimeParts busy;                             ///< Of all ranks together.
  std::uint64_t idle_ns = 0;                  ///< Of all ranks together.
  std::uint64_t idle_most_ns = 0;             ///< Of one rank.
  std::vector<std::uint64_t> bytes_by_level;  ///< As StepTime has it.
};

/// Pure. Errors and precondition: those of step_time().
Result<PlanReport> report_of(const model::StepPlan& plan, const CostModel& costs,
                             const StepTimeOptions& options = {});
/// The same, where the time is known already. Precondition: it is that of the plan.
PlanReport report_of(const model::StepPlan& plan, const CostModel& costs, const StepTime& time);

/// "work", "longest" or "none".
std::string_view to_string(model::BoundTerm term);

}  // namespace batchloom::planning
