// SPDX-License-Identifier: Apache-2.0
#include "cli/pipeline_inputs.h"

#include "batchloom/simulator/input_file.h"
#include "batchloom/sources/glob.h"

namespace batchloom::cli {

control::PipelineInputs disk_inputs() {
  return {.expand = sources::files_matching, .read = [](const std::string& path) {
            return simulator::read_text_file(path, control::kPipelineMaxBytes);
          }};
}

}  // namespace batchloom::cli
