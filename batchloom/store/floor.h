// SPDX-License-Identifier: Apache-2.0
// The floor: the slot below which (and at which) nothing counts. It only rises, and it is raised
// before anything at or below it is deleted.
#pragma once

#include "batchloom/store/stream.h"

namespace batchloom::store {

/// Whether there is a floor, and of this stream. `not_found` where it is missing and no slot above
/// genesis exists: an init is under way or was interrupted. `corruption` where it is damaged or
/// another stream's, or missing although somebody has committed.
Status check_floor(const Stream& stream, const CallOptions& call);

/// Whether slots above genesis exist.
Result<bool> has_commits(objstore::ObjectStore& objects, const CallOptions& call);

/// The floor now. `corruption` where it is missing: init makes it and nothing removes it.
Result<Slot> read_floor(const Stream& stream, const CallOptions& call);

/// Raises the floor to at least `target` and returns what it is now. A lost reply is settled by
/// reading it again.
Result<Slot> raise_floor(const Stream& stream, Slot target, const CallOptions& call);

}  // namespace batchloom::store
