// SPDX-License-Identifier: Apache-2.0
// The states that a stream still has of its pipeline.
//
//  1. A commit's head has the pipeline's state after the last batch of that commit. Between batches
//     that were committed at once there was none.
//  2. Heads above the floor are dense, and their next_step never goes back: which one committed a
//     step is found by bisection.
//  3. Heads at the floor and below are gone, and so may be a state that stands beside its head, as
//     soon as a newer one is committed. What a step held is in its batch; the state is not.
#pragma once

#include <optional>

#include "batchloom/control/pipeline_state.h"
#include "batchloom/store/head.h"
#include "batchloom/store/stream.h"

namespace batchloom::control {

/// A pipeline's state, and where it stands.
struct StoredState {
  store::Step next_step;  ///< It is the state after the step before this one.
  PipelineState state;

  friend bool operator==(const StoredState&, const StoredState&) = default;
};

/// What the pipeline had committed last when `head` was written. nullopt where it had committed
/// nothing, and where its state stood beside and was reclaimed. `invalid` or `corruption` where the
/// producer's state is no pipeline's; else errors of the store.
Result<std::optional<PipelineState>> read_pipeline_state(const store::Stream& stream,
                                                         const store::Head& head,
                                                         const CallOptions& call);

/// The state that was committed together with `step`: after it, or after a later step of the same
/// commit. nullopt where it is there no more, or not yet. Errors as of read_pipeline_state().
Result<std::optional<StoredState>> find_stored_state(const store::Stream& stream, store::Step step,
                                                     const CallOptions& call);

}  // namespace batchloom::control
