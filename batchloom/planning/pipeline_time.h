// SPDX-License-Identifier: Apache-2.0
// When a step ends that runs through pipeline stages, by the 1F1B schedule.
//
// Every HDP rank is a pipeline of P stages. Members of a ring run each event of its task together,
// so that each waits for all others: the pipelines are coupled, and the time of a step is that of
// the whole graph of events.
//
//  1. Tasks have slots, the same for all members. Stage p goes forward with slots 1 to P - p, then
//     by turns backward with the next one that went forward and forward with the next; what is left
//     goes backward at the end. Ranks pass over slots in which they have no task.
//  2. Forward comes after the stage before, backward after the stage behind.
//
// (If each rank counted its own tasks, rings would deadlock: with two stages, rank 0 running tasks
// X R S and rank 1 running R Y S, R and S being rings, the first stage of rank 0 wants S forward
// before R backward, and that of rank 1 wants it after.)
//
// The graph is walked, not simplified: an event begins when it is the next one on its stage of all
// members, and the one it follows is over.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::planning {

/// A task as a pipeline runs it. Borrowed.
struct PipelineTask {
  std::span<const std::uint32_t> members;  ///< HDP ranks, distinct.
  std::uint32_t slot = 0;                  ///< Grows from task to task of a rank.
  std::uint64_t forward_ns = 0;            ///< On one stage.
  std::uint64_t backward_ns = 0;
};

/// One phase of a task on one stage, on all members.
struct PipelineEvent {
  std::uint32_t task = 0;
  std::uint32_t stage = 0;
  bool backward = false;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

struct PipelineTime {
  std::uint64_t makespan_ns = 0;
  std::vector<std::uint64_t> busy_ns;  ///< By HDP rank: of each of its stages.
  std::vector<PipelineEvent> events;   ///< Those of a rank's stage in the order of running.
};

/// O(events): tasks x members x stages. `invalid` where slots do not grow along a rank's tasks.
/// Preconditions: members are below `ranks`; at least one stage.
Result<PipelineTime> time_of_pipeline(std::span<const PipelineTask> tasks, std::uint32_t ranks,
                                      std::uint32_t stages);

}  // namespace batchloom::planning
