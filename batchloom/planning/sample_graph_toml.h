// SPDX-License-Identifier: Apache-2.0
// A sample graph as people write it down:
//
//   seed = 17
//
//   [step]
//   tokens = 524_288                 # or samples = 1024
//   max_sample_tokens = 16_384
//
//   [[source]]
//   name = "captions"
//   weight = 0.5                     # or [{ step = 0, value = 0.1 },
//                                    #     { step = 2000, value = 0.4, ramp = "linear" }]
//   order = "random"                 # random (default) | file
//   exhausted = "repeat"             # repeat (with epochs = N) | stop (default) | drop | error
//
//   [[select]]
//   modality = "image"               # image | text
//   distribute = "world"             # dp | hdp | world
//   cost = "vit"                     # a cost model, by name
//   balance = "lpt"                  # none | lpt | kk | two_level | hdp | two_module
//
//   [[select]]
//   modality = "text"
//   distribute = "dp"
//   cost = "h200-llama7b"
//   balance = "two_level"
//   capacity = 16_384                # tokens, 8192 by default; min_share = 4096, offload = true
//   broadcast_at = ["tp"]
//
// Without seed, step and sources the members of steps are given, and not drawn.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/planning/graph_spec.h"

namespace batchloom::planning {

/// The graph in `text`, the same as its calls in C++ make. Cost models are looked for in `models`,
/// then among those that come with Batchloom. `invalid`, with all faults: what is not TOML, with
/// line and column; an unknown key or name, with those that are known; a wrong type or a number out
/// of range, with what was expected; what find_faults() finds; each with its line and key.
Result<GraphSpec> parse_sample_graph(std::string_view text, std::span<const CostModel> models = {});

/// Text that parse_sample_graph() makes the same graph of, given its cost models. `invalid`: a seed
/// of 2^63 or more, which TOML has no number for.
Result<std::string> to_toml(const GraphSpec& graph);

}  // namespace batchloom::planning
