// SPDX-License-Identifier: Apache-2.0
// [[source]] of a pipeline file.
#pragma once

#include <string>

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/pipeline_toml.h"
#include "batchloom/control/table_reader.h"

namespace batchloom::control {

/// Where sources are read.
struct SourceContext {
  const std::string& file;  ///< The pipeline's.
  const PipelineInputs& inputs;
  /// Whether the tokenizer can give masks with its ids.
  bool gives_masks = false;
};

/// What the table says. Faults are noted; what they concern keeps its default.
SourceConfig read_source(TableReader& table, const SourceContext& context);

}  // namespace batchloom::control
