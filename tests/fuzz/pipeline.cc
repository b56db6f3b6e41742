// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is a pipeline file, in a world in which every pattern matches a file of its own
// name. What is accepted is described, and read as the same config.
#include "batchloom/control/pipeline_describe.h"
#include "batchloom/control/pipeline_toml.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::control {
namespace {

PipelineInputs willing_inputs() {
  return {.expand = [](const std::string& pattern) -> Result<std::vector<std::string>> {
            return std::vector<std::string>{pattern};
          },
          .read = [](const std::string& path) -> Result<std::string> {
            return Status::not_found(path);
          }};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  const auto pipeline = parse_pipeline(as_text(input), "p.toml", willing_inputs());
  if (!pipeline.is_ok()) {
    BL_CHECK(pipeline.is(ErrorKind::kInvalid), pipeline.status().to_string());
    return 0;
  }
  const auto again = parse_pipeline(describe(*pipeline), "p.toml", willing_inputs());
  BL_CHECK(again.is_ok() && again->config == pipeline->config, describe(*pipeline));
  return 0;
}

}  // namespace batchloom::control
