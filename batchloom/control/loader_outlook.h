// SPDX-License-Identifier: Apache-2.0
// What a run's loaders will do, before it runs: what samples of each source cost, read from the
// files, and the threads that follow (partition.h). A run measures the same while it brings
// samples (loader_threads.h), and goes by the same rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/control/partition.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/source_profile.h"
#include "batchloom/control/step_loader.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"

namespace batchloom::control {

/// Of a pipeline's loaders: half of limits.memory; the other half is for constructors.
PartitionLimits loader_limits(const PipelineConfig& config, std::uint32_t cores);
/// Of a pipeline's blocks.
BlockWidths widths_of(const PipelineConfig& config);

struct MeasureOptions {
  std::uint32_t max_sample_tokens = 1;         ///< Where records are cut.
  Duration at_most = std::chrono::seconds(1);  ///< For all sources together.
  ReadThreadTimes thread_times = {};           ///< As ProfiledFetcher takes it.
};

/// By SourceId. Reads up to SourceProfile::kFirstSamples samples of each source in kFirstOrders
/// orders, from places all over it, in this thread, one order of each source after another until
/// the time is up: then some have fewer, or none. So have those that cannot be read. Writes
/// nothing. Errors: those of `call`.
Result<std::vector<SampleCost>> measure_sources(Runtime& runtime, planning::Metadata& metadata,
                                                SampleFetcher& fetcher,
                                                const MeasureOptions& options,
                                                const CallOptions& call);

struct LoaderOutlook {
  std::vector<SampleCost> costs;      ///< By SourceId.
  std::vector<SourceDemand> demands;  ///< By SourceId: the most in any of the steps.
  Partition partition;
};

/// Of the stream's first `steps` steps, as fast as cores can make them. Errors: those of
/// partition(). Precondition: steps is at least 1.
Result<LoaderOutlook> foresee_loaders(const planning::MixSpec& mix,
                                      const planning::Metadata& metadata,
                                      std::vector<SampleCost> costs, const PartitionLimits& limits,
                                      std::uint64_t steps);

}  // namespace batchloom::control
