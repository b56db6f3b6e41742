// SPDX-License-Identifier: Apache-2.0
// What a slot may change that no producer's session wrote: its writer is empty. Each is exactly one
// event (event_proposal.h) or one step of a trim (trim.h). What it did is recognised from what
// changed; the same pure function, applied to the head before, must then make the head after.
#pragma once

#include <string>
#include <vector>

#include "batchloom/store/head.h"

namespace batchloom::store {

/// Everything about `after` that neither could have made out of `before`, as texts for messages.
/// Preconditions: those of transition_problems(); `after` has no writer.
std::vector<std::string> edit_problems(const Head& before, const Head& after);

}  // namespace batchloom::store
