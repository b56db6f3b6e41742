// SPDX-License-Identifier: Apache-2.0
// [[source]] of a pipeline file.
#pragma once

#include <string>
#include <string_view>

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

/// A source's weight as the file or a membership has it: `0.5`, or a list of
/// `{ step, value, ramp }`. `invalid`, naming what is wrong, for anything else.
Result<planning::Schedule> parse_weight(std::string_view text);

}  // namespace batchloom::control
