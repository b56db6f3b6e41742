// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "batchloom/client/step_fetcher.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::client {

/// Lays stored steps out for a topology, as the planner would have done at first:
///
///   strategy  the stored plan's, where the planner knows it; else lpt: whole samples within the
///             groups along cp
///   costs     those the index carries, else those it names, else h200-llama7b: every rank takes
///             the same
///   capacity  the index's; where it states none, what the stored plan's fullest micro-batch holds;
///             so too with the smallest share and offload of hdp
///
/// Where the index says how long samples may be (max_sample_tokens), a topology that has no room
/// for such a one is refused with the first step, whatever that holds: a job learns it at once, and
/// not from a long sample, days later. One thread at a time.
class Replanner {
 public:
  explicit Replanner(model::Topology topology) : topology_(std::move(topology)) {}

  /// The plan of the same samples, in their stored order; the same for every caller. `invalid`, as
  /// of planning::plan_with(): a sample that fits nowhere, and parts that may be too long
  /// (ErrorCase::kDoesNotFit, naming what is needed and what there is); a cost table that is none.
  Result<model::StepPlan> plan(const StoredStep& stored);

 private:
  Result<planning::CostModel> costs_of(const store::BatchOrigin& origin);
  /// Whether the longest sample that the stream may have has room.
  Status check_longest(const StoredStep& stored, std::uint32_t capacity_tokens) const;

  struct CachedCosts {
    std::string name;
    Bytes table;
    planning::CostModel costs;
  };

  const model::Topology topology_;
  std::optional<CachedCosts> cached_;
};

/// Whether every rank has whole samples, and as many micro-batches as the others, in steps of this
/// one's strategy: `invalid` (ErrorCase::kSplitSamples) for hdp and its like. As
/// ConsumerOptions::admit of jobs that do not train by rings.
Status admit_whole_samples(const StoredStep& stored);

/// A Replanner as ConsumerOptions::plan_step.
PlanStep plan_for(model::Topology topology);

}  // namespace batchloom::client
