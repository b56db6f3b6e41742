// SPDX-License-Identifier: Apache-2.0
// Trimming as pure functions of a head. The order in which a reclaimer applies them, and why that
// is safe, stands in trimmer.h.
#pragma once

#include "batchloom/store/head.h"
#include "batchloom/store/safeguards.h"

namespace batchloom::store {

/// The head after `head` that announces that steps below `step` will go. Replaces any intent. Give
/// it what pins keep, be it above next_step: cut to that, the intent would not warn whoever pins a
/// step in between, which is trimmed once it is committed.
Head propose_trim_intent(const Head& head, Step step);

/// The head after `head` without the intent. Precondition: it has one.
Head withdraw_trim_intent(const Head& head);

/// The head after `head` whose first step is min(next_step, max(first_step, step)), without the
/// intent. What is wholly below the first step is dropped: tail entries, references to segments,
/// SKIPs, and topologies and memberships that a later one replaced. Precondition: the intent is the
/// caller's own, and `step` is not above it.
Head complete_trim(const Head& head, Step step, const Safeguards& safeguards);

}  // namespace batchloom::store
