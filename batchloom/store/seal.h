// SPDX-License-Identifier: Apache-2.0
// Keeping a head small: full parts move into immutable segments, which form a tree.
//
//  1. A full tail becomes a segment of level 0; `arity` segments of one level become one of the
//     next. Rows are never merged, so a segment's size is bounded by its children's count.
//  2. A segment written for slot v+1 holds only what head v holds already. New entries go into
//     the new tail.
//  3. A segment is named after the slot it was written for. Where that slot is lost, so is the
//     segment; the next attempt writes its own.
#pragma once

#include <functional>
#include <vector>

#include "batchloom/store/codec.h"
#include "batchloom/store/limits.h"

namespace batchloom::store {

/// A segment to upload before the head that refers to it.
struct PendingSegment {
  SegmentName name;
  Encoded object;
};

/// Moves the tail of `head` (which is becoming the head of `slot`) into a segment of level 0, and
/// full levels upward. Precondition: the tail is not empty and is that of slot - 1.
std::vector<PendingSegment> seal_tail(Head& head, Slot slot, const StreamUuid& uuid,
                                      const Limits& limits,
                                      const std::function<Nonce()>& next_nonce);

/// How many of `entries` fit into the tail of `head` as it is.
std::size_t fitting_prefix(const Head& head, std::span<const Entry> entries, const Limits& limits);

}  // namespace batchloom::store
