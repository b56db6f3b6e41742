// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::simulator {

/// A phase of a task on a rank.
struct RankSpan {
  std::uint32_t rank = 0;   ///< An HdpRank.
  std::uint32_t stage = 0;  ///< Of its pipeline.
  model::Phase phase = model::Phase::kForward;
  std::uint32_t ring = 1;  ///< Members of the task.
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t compute_ns = 0;  ///< At its start; then the rank waits for hops and copies.
};

/// When each rank runs what: rank by rank, stage by stage, by time. Precondition: `time` is that of
/// `plan`.
std::vector<RankSpan> rank_spans(const model::StepPlan& plan, const planning::StepTime& time);

}  // namespace batchloom::simulator
