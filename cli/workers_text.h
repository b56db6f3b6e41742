// SPDX-License-Identifier: Apache-2.0
// For `explain`: how many threads bring samples, why so many, and what they may hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "batchloom/control/loader_outlook.h"
#include "batchloom/control/pipeline_config.h"
#include "cli/json.h"

namespace batchloom::cli {

struct WorkersExplained {
  std::uint32_t cores = 1;
  std::optional<control::LoaderOutlook> outlook = {};
  std::string no_outlook = {};  ///< Why there is none.
  /// Of the steps that are foreseen, while it is loaded; 0: not known.
  std::uint64_t largest_step_bytes = 0;
};

/// For programs.
Fields workers_fields(const control::PipelineConfig& config, const WorkersExplained& workers);

/// For people: lines that begin with '#'.
std::string workers_text(const control::PipelineConfig& config, const WorkersExplained& workers);

}  // namespace batchloom::cli
