// SPDX-License-Identifier: Apache-2.0
// What `batchloom run --metrics` shows (docs/formats/metrics.md says what each metric means).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/pipeline_run.h"
#include "cli/metric_family.h"

namespace batchloom::cli {

/// Where a run stands.
struct RunLook {
  control::PipelineProgress progress = {};
  double seconds = 0;                                  ///< Since it began.
  std::map<std::string, std::uint64_t> counters = {};  ///< Of its object store (metered_store.h).
};

/// Of the process, whatever it does.
std::vector<MetricFamily> build_metrics();
/// These, and those of a run, by name. Pure. A bound that the pipeline does not have is left out,
/// with what is measured by it.
std::vector<MetricFamily> run_metrics(const control::PipelineConfig& config, const RunLook& look);

}  // namespace batchloom::cli
