// SPDX-License-Identifier: Apache-2.0
// Hybrid assignment where every HDP rank is a pipeline of stages.
//
//  1. Targets from the lower bound upward. For each: gangs that end by it (pipeline_gangs.h), short
//     samples on the ranks around them (rank_loads.h, load_repair.h), and on each rank the packs
//     and their order that are through first (rank_sequence.h).
//  2. All events are walked (pipeline_tasks.h). What each rank took longer than the sum of its work
//     is its bubble; the short samples are spread again around gangs and bubbles, a few times.
//  3. The best plan seen is taken. Steps of few samples are searched by list schedules too.
//
// The effort is a number of rounds, so that the result never depends on a clock.
#pragma once

#include "batchloom/planning/hdp_problem.h"
#include "batchloom/planning/pipeline_costs.h"
#include "batchloom/planning/pipeline_tasks.h"

namespace batchloom::planning {

struct HdpPipelineEffort {
  int targets = 6;       ///< That gangs could keep.
  int rounds = 2;        ///< For each of them.
  int final_rounds = 4;  ///< For the best.
};

/// What pipelines run, times being of one layer, and how long they take.
struct HdpPipelinePlan {
  PipelineTasks tasks;
  std::uint64_t makespan_ns = 0;
};

/// Pure.
HdpPipelinePlan assign_pipelines(const PipelineCosts& pipeline, const HdpCosts& costs,
                                 const HdpProblem& problem, const HdpPipelineEffort& effort = {});

}  // namespace batchloom::planning
