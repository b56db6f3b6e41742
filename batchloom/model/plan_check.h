// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"

namespace batchloom::model {

/// How many tokens a micro-batch may hold.
struct Capacity {
  /// Without offload.
  std::uint32_t tokens = 0;
  /// The model's layers on a rank. With offload ratio r a micro-batch may hold m tokens while
  /// (2 + (1 - r)(layers - 2)) x m <= layers x tokens: two layers always stay on the device
  /// (ByteScale, section 4.2). Below 3, offload buys nothing.
  std::uint32_t layers = 0;
};

struct PlanCheckOptions {
  /// Not checked when absent: a plan does not carry its capacity.
  std::optional<Capacity> capacity = {};
  /// Every rank runs the same number of micro-batches: so for every strategy but "hdp".
  bool equal_micro_batch_counts = false;
};

/// Whether `plan` can be walked: enums are known; ranges lie inside their vectors and follow each
/// other without gaps; indices and ranks exist; pieces are not empty and lie inside their samples;
/// there is one row per HDP rank. Linear time. Pure. `invalid`, naming the first place that is not
/// so.
Status check_plan_structure(const StepPlan& plan);

/// Whether `plan` is one that may be executed, as far as no cost model is needed. On top of the
/// structure:
///  1. each token of each sample is in exactly one piece, and no sample is listed twice;
///  2. all pieces of a sample belong to one task;
///  3. a task's members are distinct and are exactly the ranks that hold its micro-batches, one
///  each,
///     which every rank runs in the order of the tasks;
///  4. each task goes forward once and later backward once, and forward in the order of the tasks;
///  5. capacity and counts of micro-batches, if asked for;
///  6. the global count of valid labels is the samples' sum; the makespan is not below the bound.
/// Almost linear time. Pure. `invalid`, naming sample, rank, task and interval of the first
/// violation.
Status check_plan(const StepPlan& plan, const PlanCheckOptions& options = {});

}  // namespace batchloom::model
