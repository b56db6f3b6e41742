// SPDX-License-Identifier: Apache-2.0
// A pipeline as planning takes it.
#pragma once

#include "batchloom/control/pipeline_config.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/mixture_config.h"

namespace batchloom::control {

/// mix -> distribute -> cost -> balance: of the tokens, and with two_module of pictures too. A
/// source that the run's split has nothing of keeps its place, and weighs nothing.
///
/// Together with config.topology.axes it is what planning::plan_step() takes.
planning::GraphSpec graph_of(const PipelineConfig& config);

/// The mixture alone, of sources with this many records each, by their places in the config: for
/// what asks about weights before records are counted. A source that takes no part has none.
planning::MixtureConfig mixture_of(const PipelineConfig& config, std::uint64_t records);

}  // namespace batchloom::control
