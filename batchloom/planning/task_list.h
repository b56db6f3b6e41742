// SPDX-License-Identifier: Apache-2.0
// For strategies that say which tasks there are and in which order their ranks take them, and leave
// it at that: when each begins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "batchloom/planning/hdp_costs.h"
#include "batchloom/planning/plan_draft.h"

namespace batchloom::planning {

/// Collects tasks in their order. A task begins when the last of its members is through with those
/// before, and takes on each of them: the sum over its samples of att(s) / d, plus rest(tokens of
/// the member that holds most), without any exchange; see hdp_costs.h.
class TaskList {
 public:
  /// The samples by row. All that is given has to outlive the list.
  TaskList(const HdpCosts& costs, std::span<const model::PlanSample> samples)
      : costs_(costs), samples_(samples), free_ns_(costs.shape().ranks, 0) {}

  /// No rows: a filler. Preconditions: at least one member, distinct ones below the ranks.
  void add(std::span<const model::HdpRank> members, std::span<const std::uint32_t> rows,
           model::OffloadRatio offload = {});

  /// Of one layer.
  PlanDraft take() &&;

 private:
  const HdpCosts& costs_;
  const std::span<const model::PlanSample> samples_;
  std::vector<std::uint64_t> free_ns_;  // By rank.
  PlanDraft draft_;
};

/// Ranks first, first + 1, ..., beginning anew at 0 behind the last one.
std::vector<model::HdpRank> ranks_from(std::uint32_t first, std::uint32_t count,
                                       std::uint32_t ranks);

/// The name of a row, for messages.
std::string sample_text(const model::PlanSample& sample);

}  // namespace batchloom::planning
