// SPDX-License-Identifier: Apache-2.0
// What a stream remembers, where it goes on by other settings.
//
//  1. A source goes on where it was, if nothing changed that decides its records, their parts or
//     their order: its files, fields, labels, split and order; seed, split of the run, [tokens],
//     max_sample_tokens and over_length. Else it begins anew, as one that is new does. Sources are
//     known by name.
//  2. What sources are owed stays owed where all of them are still there and quotas are counted as
//     before; else quotas begin anew. Either way nobody is farther off than before.
//  3. Weights are those of the settings, and not those that were set while it ran. Whatever had
//     come to an end is looked at again.
#pragma once

#include "batchloom/control/membership.h"
#include "batchloom/control/pipeline_state.h"

namespace batchloom::control {

/// Settings, and a state that steps were drawn to by them.
struct SettledState {
  const Membership& settings;
  const PipelineState& state;
};

/// The state after `before`, for going on by other settings. `fresh` is those settings' own before
/// their first step. `corruption`: `before` is not of these sources.
Result<PipelineState> state_after_change(const SettledState& before, const SettledState& fresh);

}  // namespace batchloom::control
