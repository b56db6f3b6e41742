// SPDX-License-Identifier: Apache-2.0
// What may become of the parts of a head that belong to no producer: first step, trim intent, end,
// topologies, memberships and SKIPs.
//
//   I3   a trim drops what lies wholly below the first step, and nothing else
//   I8   a slot by nobody does exactly one thing; a membership is set in its producer's term
//   I11  the first step never falls
//   I12  it rises only where an intent has announced it, and the intent goes with that
//   I15  only events change the end, topologies, memberships and SKIPs, no membership of a
//        committed step changes; nothing is appended to an ended stream, or laid out for another
//        topology than the one that holds
#pragma once

#include "batchloom/simulator/violations.h"
#include "batchloom/store/head.h"

namespace batchloom::simulator {

/// Judges the step from `before` to `after`, the head of the next slot. Shares nothing with the
/// code that makes heads.
void check_edit(const store::Head& before, const store::Head& after, Violations& violations);

}  // namespace batchloom::simulator
