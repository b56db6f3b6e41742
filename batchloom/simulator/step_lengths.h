// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"

namespace batchloom::simulator {

/// What lengths_of_steps() draws.
struct StepLengths {
  std::uint32_t context_tokens = 0;  ///< Longer samples are left out.
  std::uint64_t step_tokens = 0;     ///< The last sample of a step is cut to it.
  std::uint64_t steps = 1;
  std::uint64_t seed = 1;
};

/// By step, the lengths of its samples in the order in which they were drawn.
using LengthsByStep = std::vector<std::vector<std::uint32_t>>;

/// From a named distribution (length_distributions.h): step k is drawn with seed + k. Errors: those
/// of draw_lengths().
Result<LengthsByStep> lengths_of_steps(std::string_view distribution, const StepLengths& wanted);

/// From the lengths of real samples, in an order that the seed gives (permutation.h): each is taken
/// once before any is taken again. `invalid`: none fits into the context, or a step of more tokens
/// than draw_lengths() draws. Precondition: lengths are at least 1.
Result<LengthsByStep> lengths_of_steps(std::vector<std::uint32_t> lengths,
                                       const StepLengths& wanted);

/// Of the first `steps` steps of a pipeline, as its mixture draws them, cuts to max_sample_tokens
/// included; fewer where the stream ends before. Blocks as `metadata` does. `invalid`: a stream
/// without any step; else as planning::first_state() and draw_step().
Result<LengthsByStep> lengths_of_steps(const planning::GraphSpec& graph,
                                       planning::Metadata& metadata, std::uint64_t steps);

}  // namespace batchloom::simulator
