// SPDX-License-Identifier: Apache-2.0
// The settings that a stream was made by, beside those of the pipeline that would go on with it.
#pragma once

#include <optional>
#include <string_view>

#include "batchloom/control/membership.h"
#include "batchloom/store/stream.h"

namespace batchloom::control {

/// Under which a pipeline commits.
inline constexpr std::string_view kPipelineProducer = "main";

/// What a stream says of a step.
struct RecordedSettings {
  store::Step from_step;  ///< They hold from here on.
  Membership settings;

  friend bool operator==(const RecordedSettings&, const RecordedSettings&) = default;
};

/// By what the step was or will be drawn. nullopt where the stream says nothing, or no longer.
/// Errors: of decode_membership(), and of the store.
Result<std::optional<RecordedSettings>> read_settings(const store::Stream& stream, store::Step step,
                                                      const CallOptions& call);

/// How a pipeline stands to a stream. A value.
struct StreamSettings {
  store::Step next_step;  ///< Of the stream.
  /// What the stream says of next_step are the pipeline's own settings. If not, it is to say so.
  bool is_recorded = false;
  /// What its last batch was made by, where that is something else.
  std::optional<Membership> before = {};

  friend bool operator==(const StreamSettings&, const StreamSettings&) = default;
};

/// Looks, and fences nobody. `invalid`: the stream was made by other settings and `change_from` is
/// not its next step, with the differences; `change_from` where nothing has changed, or from
/// another step on; a producer's state that is no pipeline's. Else errors of the store.
Result<StreamSettings> compare_settings(const store::Stream& stream, const Membership& membership,
                                        std::optional<store::Step> change_from,
                                        const CallOptions& call);

}  // namespace batchloom::control
