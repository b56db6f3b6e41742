// SPDX-License-Identifier: Apache-2.0
// Storing batch objects under a producer's term. Whoever knows the term may do it, in any process;
// only the producer's session commits (producer_session.h).
#pragma once

#include <cstdint>
#include <span>

#include "batchloom/store/proposal.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// What a batch object holds, as its entry will say.
struct BatchInfo {
  Seq seq;
  std::uint32_t steps = 1;
  std::uint32_t ranks = 0;
  Bytes run_table;
};

/// `invalid`, naming producer and batch, for no steps or a run table of another size than its
/// ranks and steps make.
Status check_batch(const Session& session, const PendingBatch& batch);

/// Stores a batch object under a key of its own, which publishes nothing. The result, with its
/// state filled in, is what the session's commit() takes. `invalid` as check_batch(); other errors
/// leave at most an orphan. Thread-safe.
Result<PendingBatch> upload_batch(const Stream& stream, const Session& session,
                                  const BatchInfo& info, std::span<const ByteSpan> parts,
                                  const CallOptions& call);

}  // namespace batchloom::store
