// SPDX-License-Identifier: Apache-2.0
// What a strategy decides, and the plan that follows from it.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/step_plan.h"

namespace batchloom::planning {

/// A gang, or a pack on one rank, or both: samples of which every member holds a share.
struct TaskDraft {
  std::uint64_t start_ns = 0;      ///< When its members begin it.
  std::uint64_t time_ns = 0;       ///< What it takes on each of them.
  model::IndexRange members = {};  ///< Of PlanDraft::members, in ring order.
  model::IndexRange samples = {};  ///< Of PlanDraft::samples. None: a filler.
  model::OffloadRatio offload = {};
};

/// Times as the plan shall state them: of all layers.
struct PlanDraft {
  std::vector<TaskDraft> tasks;  ///< In any order. One rank's begin at different times.
  std::vector<model::HdpRank> members;
  std::vector<model::SampleIndex> samples;
  std::uint64_t lower_bound_ns = 0;
  model::BoundTerm bound_term = model::BoundTerm::kNone;
  std::uint64_t makespan_ns = 0;
};

/// From times of one layer to those of all.
void scale(PlanDraft& draft, std::uint64_t layers);

/// The plan of `samples` whose topology is `topology`.
///
///  1. Tasks by (start, -time, first sample): the one order that all ranks follow. Each goes
///     forward and backward before the next one of its ranks.
///  2. A gang of d cuts each sample into 2d chunks that differ by at most one token; member i holds
///     chunks i and 2d - 1 - i, so that causal attention is the same work for all. Tokens that are
///     left over go round the members, from one sample to the next, so that what members hold
///     differs by at most one token. A gang of one cuts nothing.
///  3. Without pipeline stages the makespan is the time at which the last rank is through, each
///     task beginning once all its members are free: the draft's may be later, where it has ranks
///     wait for others with which they share nothing.
///
/// Preconditions: each sample is in one task, each rank below the topology's HDP size.
model::StepPlan make_plan(model::Topology topology, std::string strategy,
                          std::vector<model::PlanSample> samples, PlanDraft draft);

}  // namespace batchloom::planning
