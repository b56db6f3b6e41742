// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "batchloom/control/pipeline_toml.h"

namespace batchloom::cli {

/// Of pipeline files on disks.
control::PipelineInputs disk_inputs();

/// `--split` stands in for what the file says. `invalid` where no source has such a part.
Status take_split(const std::optional<std::string>& split, control::PipelineConfig& config);

}  // namespace batchloom::cli
