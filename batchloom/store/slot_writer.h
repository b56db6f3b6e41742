// SPDX-License-Identifier: Apache-2.0
// Taking one manifest slot: the only place that writes m/<slot>.
//
//  1. Put the head if the slot is absent.
//  2. Applied: read the floor. Above it the slot is ours. At or below it we have created a dead
//     slot that others had deleted long ago: nothing is committed, and the cached head is stale.
//  3. Condition failed: the slot is taken, possibly by an earlier attempt of ours. The caller
//     reads the newest head and lets its own state decide.
//  4. Unknown, or another put under way: read the slot. Found is conclusive (as 3). Missing
//     proves nothing, since the put may still arrive: put the identical bytes again, until the
//     slot is created or taken.
#pragma once

#include "batchloom/store/manifest_reader.h"

namespace batchloom::store {

enum class SlotOutcome : std::uint8_t {
  kCommitted,  ///< The head stands, and the reader has adopted it.
  kTaken,      ///< Somebody holds the slot, possibly we: read the newest head.
};

/// Chains the head to `previous`, writes it and settles the outcome. Its txid and writer are the
/// caller's. Errors: `unknown_outcome` where the call ended (deadline, stop, a failing store) with
/// an attempt unsettled; any other error means that nothing was written.
Result<SlotOutcome> write_slot(const Stream& stream, ManifestReader& reader,
                               const StoredHead& previous, Head head, const CallOptions& call);

}  // namespace batchloom::store
