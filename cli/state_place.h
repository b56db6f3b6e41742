// SPDX-License-Identifier: Apache-2.0
// For `batchloom state`: places in a stream, and what is known of its pipeline there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/client/consumer.h"
#include "batchloom/control/stored_state.h"
#include "batchloom/control/stream_settings.h"
#include "cli/args.h"

namespace batchloom::cli {

/// Between two steps.
struct StatePlace {
  store::Step next_step;                            ///< All steps before this one lie behind.
  std::optional<client::ConsumerState> saved = {};  ///< Of a file.
};

/// Where `point` is in the stream with that newest head. `not_found`: a step that is not committed
/// yet, or was trimmed; `invalid`: a file that holds no consumer's state, or one of another stream
/// or history. Reads the file, and the index of the last step that a consumer was given.
Result<StatePlace> find_place(const StatePoint& point, const store::Stream& stream,
                              const store::Head& head, const CallOptions& call);

/// The names of a pipeline's sources, as `settings` has them for `state`. Without settings:
/// numbers. `corruption`: the state is not of these settings.
Result<std::vector<std::string>> source_names(
    const std::optional<control::RecordedSettings>& settings, const control::PipelineState& state);

/// The source's, or its number where there are fewer: a state says of itself what is struck out.
std::string name_of(model::SourceId source, std::span<const std::string> names);

/// Whether a pipeline made the step with this entry: `invalid`, naming who did instead.
Status check_made_by_pipeline(const store::Entry& entry);

}  // namespace batchloom::cli
