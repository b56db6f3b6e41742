// SPDX-License-Identifier: Apache-2.0
// The options of what takes a pipeline file.
#include "cli/define.h"

namespace batchloom::cli {

void define_explain(Options& options, Explain& explain) {
  options.argument("FILE", "a pipeline, in TOML", [&explain](const std::string& file) {
    explain.pipeline = file;
    return Status::ok();
  });
  options.flag("--json", "print JSON, with the same fields", explain.json);
}

}  // namespace batchloom::cli
