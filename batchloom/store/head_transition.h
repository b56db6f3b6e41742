// SPDX-License-Identifier: Apache-2.0
// What one commit may change. Every slot is written by a producer's session and is one of:
//
//   fence     the writer's row gets this slot as its term; rows of finished producers may go;
//   commit    the writer's row moves on by as many sequence numbers as the tail gains entries, all
//             of the writer's, from the old next_step to the new one;
//   finish    the writer's row is marked as finished.
//
// All other rows stay as they are.
#pragma once

#include <string>
#include <vector>

#include "batchloom/store/head.h"

namespace batchloom::store {

/// Everything about `after` that none of them could have made out of `before`, as texts for
/// messages. Precondition: `after` is the head of the next slot, and both obey codec.h.
std::vector<std::string> transition_problems(const Head& before, const Head& after);

}  // namespace batchloom::store
