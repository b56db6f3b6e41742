// SPDX-License-Identifier: Apache-2.0
// Plans for tests.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/model/step_plan.h"

namespace batchloom::model {

/// A valid plan that a person can draw: 4 HDP ranks, 4 samples, equal counts of micro-batches.
///   task 0  ring 2, 0, 1  sample 0:0:7:0, 13 tokens, each rank two of six chunks
///   task 1  rank 3        a pack of 0:0:8:0 (4 tokens) and 1:0:2:1 (3 tokens)
///   task 2  rank 0        0:1:0:0, 5 tokens
///   task 3  ring 1, 2, 3  nothing: a filler on each
StepPlan small_plan();

/// What a random plan is made from.
struct PlanShape {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 1;
  std::uint32_t samples = 0;
};

/// A plan that check_plan() accepts; a function of `shape`. Packs, rings, fillers and interleaved
/// phases all occur.
StepPlan random_plan(const PlanShape& shape);

/// Random plans that shrink toward few ranks and samples.
rc::Gen<StepPlan> any_plan();

struct ChangedPlan {
  std::string field;
  StepPlan plan;
};

/// Copies of `plan`, each with one field changed and the digest left as it was. Preconditions: no
/// vector of the plan is empty.
std::vector<ChangedPlan> with_each_field_changed(const StepPlan& plan);

}  // namespace batchloom::model
