// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batchloom/control/pipeline_toml.h"

namespace batchloom::cli {

/// Of pipeline files on disks.
control::PipelineInputs disk_inputs();

}  // namespace batchloom::cli
