// SPDX-License-Identifier: Apache-2.0
// What one commit may change. A slot without a writer is an event or a step of a trim
// (edit_transition.h). All others are written by a producer's session, and each is one of:
//
//   fence     the writer's row gets this slot as its term; rows of finished producers may go;
//   commit    the writer's row moves on by as many sequence numbers as the tail gains entries, all
//             of the writer's, from the old next_step to the new one;
//   finish    the writer's row is marked as finished.
//
// Entries are added only while the stream has not ended, for as many ranks as its topology has. All
// other rows stay as they are, and so does what events and trims change, and so do the tail and the
// references to segments, except that a commit may seal (seal.h):
//
//  1. The old tail is gone as a whole, and one segment of level 0, written for this slot, begins
//     where it began.
//  2. All references of one level, two at least, may then be gone into a segment of the level
//     above, written for this slot, that begins where the first of them began.
//  3. That segment may be gone with its new level in turn, as that level's last child. A new
//     segment that is lost can look like this; then the tree of segments has a gap.
#pragma once

#include <string>
#include <vector>

#include "batchloom/store/head.h"

namespace batchloom::store {

/// Everything about `after` that none of them could have made out of `before`, as texts for
/// messages. Precondition: `after` is the head of the next slot, and both obey codec.h.
std::vector<std::string> transition_problems(const Head& before, const Head& after);

}  // namespace batchloom::store
