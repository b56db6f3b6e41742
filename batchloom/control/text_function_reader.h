// SPDX-License-Identifier: Apache-2.0
// [tokens] tokenizer = { kind = "python" } of a pipeline file.
#pragma once

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/source_reader.h"
#include "batchloom/control/table_reader.h"

namespace batchloom::control {

/// Of a tokenizer whose kind was read into `tokens`: the function that the table names, with what
/// its module and its files hold. No Python runs: the module lies beside the pipeline's file, or in
/// a folder there. Faults are noted, and that other kinds have none.
void read_text_function(TableReader& table, const SourceContext& context, TokensConfig& tokens);

}  // namespace batchloom::control
