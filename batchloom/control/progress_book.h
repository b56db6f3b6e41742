// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/control/pipeline_run.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {

/// Where a run begins.
struct ProgressBegin {
  model::Step next_step;
  std::uint64_t struck = 0;
  std::vector<std::uint64_t> bad_records = {};        ///< By SourceId.
  std::vector<planning::MixtureSource> sources = {};  ///< By SourceId; may be missing.
  Time now{};
};

/// Counts what a run has done. Thread-safe.
class ProgressBook {
 public:
  explicit ProgressBook(ProgressBegin begin);

  /// A step was handed to constructors. Takes as long as report_of().
  void built(const planning::PlannedStep& step, const planning::CostModel& costs);
  void committed(store::Step next_step, std::uint64_t steps, std::uint64_t bytes);
  /// A record was struck out: so many of all sources are, and of its own so many are passed over.
  void struck(std::uint64_t records, model::SourceId source, std::uint64_t of_source);
  void lead(std::uint64_t steps);
  /// What planning waits for from now on.
  void wait_for(WaitsFor what, Time now);

  /// A wait that goes on counts until `now`.
  PipelineProgress progress(Time now) const;

 private:
  /// By source: its share of the weights at `step`.
  std::vector<double> shares_in(const planning::PlannedStep& step) const;

  const std::vector<planning::MixtureSource> sources_;
  mutable Mutex mutex_;
  PipelineProgress progress_ BL_GUARDED_BY(mutex_);
  Time since_ BL_GUARDED_BY(mutex_);  ///< It waits for what it waits for.
  std::uint64_t reports_ BL_GUARDED_BY(mutex_) = 0;
  double before_ BL_GUARDED_BY(mutex_) = 0;
  double after_ BL_GUARDED_BY(mutex_) = 0;
};

}  // namespace batchloom::control
