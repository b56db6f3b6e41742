// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "batchloom/store/manifest_reader.h"

namespace batchloom::client {

/// A step that a consumer was given, and which samples it held.
struct DeliveredStep {
  store::Step step;
  std::uint64_t samples_digest = 0;  ///< As in StepBatch.
  friend bool operator==(const DeliveredStep&, const DeliveredStep&) = default;
};

/// Whether the stream has the same samples in that step: else it is a copy that went on by itself,
/// or was set back. `invalid`, naming both digests, where it has others, and where it has no such
/// step yet. Ok where the step was trimmed: nobody can tell any more; and where it is damaged,
/// with a warning, for it is not to be read again. Reads the index of its object, and a segment.
/// Other errors: those of the store.
Status check_delivered(const store::Stream& stream, const store::Head& head,
                       const DeliveredStep& delivered, const CallOptions& call);

}  // namespace batchloom::client
