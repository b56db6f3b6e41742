// SPDX-License-Identifier: Apache-2.0
// From planned steps and their sample blocks to a batch object.
//
//  1. Blocks come in any order, and samples in any order within them. They are put in the order of
//     the plan, so that the same plan and samples give the same bytes.
//  2. Every sample of the plan must be there once, as it was planned; what is wrong is named by
//     step and sample, the first one by id.
//  3. Ranks of fixed groups all run the same number of micro-batches, fillers included (hybrid
//     plans may differ): their collectives would hang otherwise.
//
// Which of a run's columns a rank of the trainer's mesh uses, and which rank reads the run for it,
// is said by the place tree (planning/place_tree.h); a run holds them all, once per HDP rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/construction/sample_block.h"
#include "batchloom/planning/planner.h"
#include "batchloom/store/batch_builder.h"

namespace batchloom::construction {

/// One step to be built.
struct StepInput {
  planning::PlannedStep planned;
  std::vector<BlockPtr> blocks;  ///< None is null.

  /// What it takes in memory: blocks, members and plan.
  std::uint64_t size_bytes() const;
};

/// A step's samples in the order of its plan. Borrows the step's blocks.
struct StepSamples {
  std::vector<store::SampleContent> contents;
  std::vector<model::SampleMeta> origins;

  store::StepContent content(const model::StepPlan& plan) const {
    return {&plan, contents, origins};
  }
};

/// Pure. `invalid`, naming step and sample: a block of another step or token width; a sample that
/// is missing, given twice or not planned; one that is not as its plan and metadata say.
Result<StepSamples> match_samples(const StepInput& step, store::TokenWidth width);

/// Builds the object of one or more steps that follow each other (a pack). Pure but for memory: the
/// order of blocks and samples does not show. The result borrows the blocks. `invalid`: as
/// match_samples() and store::build_batch(); steps that do not follow each other; ranks with other
/// counts of micro-batches than rank 0, unless the plan is hybrid.
Result<store::BuiltBatch> build_steps(const store::BatchOptions& options,
                                      std::span<const StepInput> steps);

}  // namespace batchloom::construction
