// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "batchloom/base/mutex.h"
#include "batchloom/control/pipeline_run.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/plan_report.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {

/// Counts what a run has done. Thread-safe.
class ProgressBook {
 public:
  ProgressBook(model::Step next_step, std::uint64_t struck) {
    progress_.next_step = next_step;
    progress_.struck = struck;
  }

  /// A step was handed to constructors. Takes as long as report_of().
  void built(const planning::PlannedStep& step, const planning::CostModel& costs) {
    const auto report = planning::report_of(step.layout.plan, costs);
    std::uint64_t tokens = 0;
    for (const model::SampleMeta& sample : step.members) tokens += sample.tokens;
    const MutexLock lock(mutex_);
    progress_.samples += step.members.size();
    progress_.tokens += tokens;
    if (!report.is_ok()) return;
    ++reports_;
    before_ += report->before.imbalance();
    after_ += report->after.imbalance();
  }

  void committed(store::Step next_step, std::uint64_t steps, std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    progress_.next_step = next_step;
    progress_.steps += steps;
    progress_.bytes += bytes;
  }

  void struck(std::uint64_t records) {
    const MutexLock lock(mutex_);
    progress_.struck = records;
  }

  void lead(std::uint64_t steps) {
    const MutexLock lock(mutex_);
    progress_.lead = steps;
  }

  void wait_for(WaitsFor what) {
    const MutexLock lock(mutex_);
    progress_.waits_for = what;
  }

  PipelineProgress progress() const {
    const MutexLock lock(mutex_);
    PipelineProgress progress = progress_;
    if (reports_ > 0) {
      progress.imbalance_before = before_ / static_cast<double>(reports_);
      progress.imbalance_after = after_ / static_cast<double>(reports_);
    }
    return progress;
  }

 private:
  mutable Mutex mutex_;
  PipelineProgress progress_ BL_GUARDED_BY(mutex_);
  std::uint64_t reports_ BL_GUARDED_BY(mutex_) = 0;
  double before_ BL_GUARDED_BY(mutex_) = 0;
  double after_ BL_GUARDED_BY(mutex_) = 0;
};

}  // namespace batchloom::control
