// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/loader_threads.h"

#include <fmt/format.h>

#include "batchloom/base/log.h"
#include "batchloom/control/step_demand.h"

namespace batchloom::control {

LoaderThreads::LoaderThreads(Runtime& runtime, SampleFetcher& fetcher, const planning::MixSpec& mix,
                             const planning::Metadata& metadata,
                             const LoaderThreadsOptions& options)
    : runtime_(runtime),
      profile_(metadata.sources().size()),
      fetcher_(runtime, fetcher, profile_, options.thread_times),
      scaler_(mix_of_records(mix, metadata), options.threads, options.scaling),
      last_(runtime.now()) {}

void LoaderThreads::handed_on(const planning::PlannedStep& step, Duration waited,
                              StepLoader& loader) {
  const Time now = runtime_.now();
  const StepSeen seen{
      .step = step.step, .members = step.members, .took = now - last_, .waited = waited};
  last_ = now;
  const std::uint32_t before = scaler_.threads();
  const auto change = scaler_.after(seen, profile_.costs(), step.next.mixture.sources);
  if (!change) return;
  loader.resize(change->partition.threads, change->partition.lanes);
  if (change->partition.threads == before) return;
  log_info(fmt::format("step {}: loaders have {} threads instead of {}: {}", step.step.value,
                       change->partition.threads, before, change->why));
}

}  // namespace batchloom::control
