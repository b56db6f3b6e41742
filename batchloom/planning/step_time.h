// SPDX-License-Identifier: Apache-2.0
// When a step ends, whatever made its plan: the same rules for every strategy, so that they can be
// compared.
//
//  1. A task of d members computes, by layer: the sum over its samples of att(s) / d, plus
//     lin(tokens of the member that holds most), plus one launch. So a ring cuts causal attention
//     evenly, as plan_draft.h does. A filler runs one token.
//  2. A ring of d takes d steps in each phase, with a hop to the next member between two of them:
//     d - 1 hops. A hop moves the keys and values of the largest share, and goes on while a step
//     computes, so that only what it takes longer counts: (d - 1) x (hop - hidden). A step computes
//     1 / d of the member's attention, and `overlap_percent` of that hides a hop.
//  3. hop = bytes / bandwidth + latency, of the slowest link between neighbours of the ring. That
//     of two ranks is the slowest of the levels from the innermost to the first whose group holds
//     both; where none does, of all levels.
//  4. Backward, a hop moves `backward_bytes_factor` times as much: keys and values again, and their
//     gradients.
//  5. Activations on the host: a phase takes at least as long as copying them.
//  6. All members of a task begin each phase together: when the last of them is free.
//     Without pipeline stages each rank follows its part of the plan's events; with them the
//     schedule is 1F1B (pipeline_time.h), by the slots of step_plan.h.
//
// Not counted: what pipeline stages send each other, tensor parallelism's exchange, the reduction
// of gradients and the optimizer: no strategy changes them. Rings do not slow each other down.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

struct StepTimeOptions {
  /// What a ring sends backward, in times of what it sends forward. 2: keys, values and both
  /// gradients in the precision of the first; 3 where gradients take twice the bytes.
  std::uint32_t backward_bytes_factor = 2;
  /// Off: as if links were infinitely fast. So too for a topology without levels.
  bool links = true;
  /// How much of a step's computing goes on beside a hop. 100: all of it, so that the longer of
  /// both counts; 0: a hop begins when a step ends.
  std::uint32_t overlap_percent = 100;
};

/// What a phase of a task, or a rank, spends its time on.
struct TimeParts {
  std::uint64_t compute_ns = 0;
  std::uint64_t ring_ns = 0;  ///< Waiting for hops.
  std::uint64_t copy_ns = 0;  ///< Waiting for copies to and from the host.

  std::uint64_t total_ns() const { return compute_ns + ring_ns + copy_ns; }
  friend bool operator==(const TimeParts&, const TimeParts&) = default;
};

/// Of one pipeline stage, the layers of which are layers / stages, rounded up.
struct TaskTime {
  TimeParts forward;
  TimeParts backward;
  std::uint64_t begin_ns = 0;  ///< Of its first event, on all members.
  std::uint64_t end_ns = 0;    ///< Of its last.

  friend bool operator==(const TaskTime&, const TaskTime&) = default;
};

/// Of each of the rank's stages. The sum of all parts and `idle_ns` is the step's time.
struct RankTime {
  TimeParts busy;
  std::uint64_t idle_ns = 0;

  friend bool operator==(const RankTime&, const RankTime&) = default;
};

/// One phase of a task on one pipeline stage, on all members.
struct EventTime {
  model::TaskIndex task;
  model::Phase phase = model::Phase::kForward;
  std::uint32_t stage = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;

  friend bool operator==(const EventTime&, const EventTime&) = default;
};

struct StepTime {
  std::uint64_t step_ns = 0;
  std::vector<TaskTime> tasks;  ///< By TaskIndex.
  std::vector<RankTime> ranks;  ///< By HdpRank.
  std::vector<EventTime>
      events;  ///< Those of one rank and stage in the order in which it runs them.
  /// What rings send in all layers and both phases, by the topology's levels: between neighbours
  /// whose innermost common group is of that level. One that none holds counts for the last;
  /// without levels there is one number.
  std::vector<std::uint64_t> bytes_by_level;
};

/// Linear time. Pure. `invalid`: check_plan_structure() refuses the plan, or with pipeline stages,
/// its ranks do not run their tasks in the order of the tasks. Precondition: the plan passes
/// model::check_plan, or else the times mean nothing.
Result<StepTime> step_time(const model::StepPlan& plan, const CostModel& costs,
                           const StepTimeOptions& options = {});

}  // namespace batchloom::planning
