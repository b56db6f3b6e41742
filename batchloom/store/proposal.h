// SPDX-License-Identifier: Apache-2.0
// What a commit would write, computed from the head it replaces. Pure: no I/O, no clock; randomness
// comes in as nonces.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/store/safeguards.h"
#include "batchloom/store/seal.h"

namespace batchloom::store {

/// A batch object that was uploaded and waits for its commit, with the producer's state after it.
struct PendingBatch {
  Seq seq;
  Nonce nonce;  ///< Of the object's key.
  std::uint64_t size_bytes = 0;
  std::uint32_t steps = 1;
  std::uint32_t ranks = 0;
  Bytes run_table;    ///< Only where ranks x steps <= kInlineRunRows.
  Bytes state_after;  ///< Opaque; what a successor needs to continue after this batch.
};

/// A producer's incarnation.
struct Session {
  std::string producer;
  Term term;
};

/// Whether the stream takes `batches` after `head`: `invalid` where it has ended, or where one was
/// planned for other ranks than the topology that holds there.
Status check_appendable(const Head& head, const Session& session,
                        std::span<const PendingBatch> batches);

/// The pending batches that `head` does not cover yet. `fenced` where the session's term is not the
/// producer's any more; `invalid` where the batches are not consecutive from the producer's next
/// one, and as check_appendable().
Result<std::span<const PendingBatch>> still_pending(const Head& head, const Session& session,
                                                    std::span<const PendingBatch> batches,
                                                    const Safeguards& safeguards);

struct Proposal {
  Head head;
  std::vector<PendingSegment> segments;  ///< To upload before the head is put.
  std::size_t batches = 0;               ///< How many of those offered it contains; at least one.
};

/// The head after `head` with as many of `batches` (as still_pending() gave them) as fit. The
/// producer's state is the session's to fill in.
Proposal append_batches(const Head& head, const Session& session,
                        std::span<const PendingBatch> batches, const StreamUuid& uuid,
                        const Limits& limits, const std::function<Nonce()>& next_nonce);

/// True if a state of so many bytes may stand inline in the row of `producer`; otherwise it goes
/// into an object of its own.
bool state_fits_inline(const Head& head, const std::string& producer, std::size_t state_bytes,
                       const Limits& limits);

/// The head after `head` in which `producer` has a new incarnation, whose term is the new slot.
/// Rows of finished producers make room, oldest first. `exhausted` where there is none.
Result<Head> fence_producer(const Head& head, const std::string& producer, const Limits& limits);

/// The head after `head`, with the producer marked as finished.
Head finish_producer(const Head& head, const Session& session);

}  // namespace batchloom::store
