// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "batchloom/control/loader_scaler.h"
#include "batchloom/control/source_profile.h"
#include "batchloom/control/step_loader.h"
#include "batchloom/planning/metadata.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {

struct LoaderThreadsOptions {
  std::uint32_t threads = 2;  ///< To begin with.
  LoaderScalerOptions scaling = {};
  ReadThreadTimes thread_times = {};  ///< As ProfiledFetcher takes it.
};

/// Measures what sources cost while a StepLoader brings samples, and gives it the threads that
/// steps ask for. fetcher() is thread-safe; all else is one thread at a time, the loader's owner.
class LoaderThreads {
 public:
  /// `runtime` and `fetcher` outlive it.
  LoaderThreads(Runtime& runtime, SampleFetcher& fetcher, const planning::MixSpec& mix,
                const planning::Metadata& metadata, const LoaderThreadsOptions& options);

  /// For the loader.
  SampleFetcher& fetcher() { return fetcher_; }

  /// A step was taken from the loader; `waited` as StepSeen has it. Resizes the loader, and logs
  /// why, where it is to have another number of threads.
  void handed_on(const planning::PlannedStep& step, Duration waited, StepLoader& loader);

 private:
  Runtime& runtime_;
  SourceProfile profile_;
  ProfiledFetcher fetcher_;
  LoaderScaler scaler_;
  Time last_;  ///< When the step before was handed on, or loading began.
};

}  // namespace batchloom::control
