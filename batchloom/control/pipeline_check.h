// SPDX-License-Identifier: Apache-2.0
// What keys of a pipeline say together.
#pragma once

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/table_reader.h"

namespace batchloom::control {

/// Notes, each with the line of the key to change:
///
///   [[source]]  a name that another has, more than kMaxSources; text where tokenizer is "ids"
///   [tokens]    "bytes" without any text; no vocab where nothing else tells it; ids at or above it
///   [image]     pictures without an id, or with one that texts give; pictures that no part could
///               hold; settings of them where no source has any
///   [run]       a split that no source has
///   weights     a step in which no source of the split weighs anything
///   [step]      max_sample_tokens above step.tokens, or above capacity x ranks_of_a_part()
///   [balance]   what the planner cannot do with this graph on this topology
///
/// The last where nothing else is wrong. Precondition: a config whose keys are right by themselves.
void check_pipeline(const PipelineConfig& config, ReadNotes& notes);

}  // namespace batchloom::control
