// SPDX-License-Identifier: Apache-2.0
// What a pipeline commits with every batch: all that a successor needs to go on exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/hash.h"
#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {

/// A record of a source.
struct RecordName {
  model::SourceId source;
  model::RecordIndex record;

  friend constexpr auto operator<=>(const RecordName&, const RecordName&) = default;
};

/// A value.
struct PipelineState {
  Hash128 membership;              ///< Membership::digest() of the settings that drew the steps.
  std::vector<RecordName> struck;  ///< Bad records that plans must not draw; ascending.
  planning::PlannerState planner;  ///< After the batch's last step.

  friend bool operator==(const PipelineState&, const PipelineState&) = default;
};

/// No more records are struck out in the life of a stream: a state is to stay small.
inline constexpr std::size_t kStruckMax = 4096;

/// Bytes that are equal for equal states (docs/formats/pipeline_state.md): 26, 12 for each record
/// that is struck out, and the mixture's state.
Bytes encode_pipeline_state(const PipelineState& state);

/// The state in `bytes`, which may be hostile. `corruption`: damaged, cut short or contradictory;
/// `invalid`: of a later version. The message names the byte and the reason.
Result<PipelineState> decode_pipeline_state(ByteSpan bytes);

}  // namespace batchloom::control
