// SPDX-License-Identifier: Apache-2.0
#include "cli/pipeline_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/input_file.h"
#include "batchloom/sources/glob.h"

namespace batchloom::cli {

control::PipelineInputs disk_inputs() {
  return {.expand = sources::files_matching, .read = [](const std::string& path) {
            return simulator::read_text_file(path, control::kPipelineMaxBytes);
          }};
}

Status take_split(const std::optional<std::string>& split, control::PipelineConfig& config) {
  if (!split) return Status::ok();
  config.run.split = *split;
  const auto takes = [&](const auto& source) { return control::takes_part(source, config.run); };
  if (std::ranges::any_of(config.sources, takes)) return Status::ok();
  return Status::invalid(fmt::format("--split: no source has a part '{}'", *split));
}

}  // namespace batchloom::cli
