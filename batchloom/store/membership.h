// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration that decide which samples form the steps, as the stream keeps them:
// whoever goes on with a stream compares its own with them.
//
//  1. A producer's session sets them from a step on that is not committed yet, by an event
//     (ProducerSession::set_membership). It is fenced as its commits are.
//  2. Small keys stand in the head. Larger ones are stored first, in an object named after the
//     session and its next batch: a commit of that batch, or a later session, settles that nobody
//     names it any more (reclaimer.h).
//  3. A row goes once a later one holds both at first_step and at the last committed step: whoever
//     goes on under other keys can see by which keys the last step was made.
#pragma once

#include "batchloom/store/stream.h"

namespace batchloom::store {

struct Membership {
  Step from_step;  ///< They hold from here on, until others are set.
  MembershipDigest digest;
  Bytes keys;  ///< Opaque; at most kMembershipMaxBytes.
};

/// The keys that decide membership at `step`, by the newest head; of a step that is not committed
/// yet, those that will unless others are set. `not_found` where none were set, and, naming
/// first_step, for a trimmed step that is not the last one; `corruption` where the keys are damaged
/// or missing.
Result<Membership> read_membership(const Stream& stream, Step step, const CallOptions& call);

}  // namespace batchloom::store
