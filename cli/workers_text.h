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
};

/// For programs.
Fields workers_fields(const control::PipelineConfig& config, const WorkersExplained& workers);

/// For people: lines that begin with '#'.
std::string workers_text(const control::PipelineConfig& config, const WorkersExplained& workers);

}  // namespace batchloom::cli
