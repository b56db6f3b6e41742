// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "batchloom/control/forecast.h"
#include "batchloom/control/pipeline_config.h"
#include "cli/json.h"

namespace batchloom::cli {

/// For programs.
Fields forecast_fields(const control::PipelineConfig& config, const control::Forecast& forecast);

/// For people: lines that begin with '#', as all that a pipeline file does not read.
std::string forecast_text(const control::PipelineConfig& config, const control::Forecast& forecast);

/// Each line behind "# ".
std::string commented(const std::string& lines);

}  // namespace batchloom::cli
