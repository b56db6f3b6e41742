// SPDX-License-Identifier: Apache-2.0
// A producer's incarnation: fences its predecessors, uploads batch objects, commits them exactly
// once.
//
//  1. open() commits a fence: a head in which the producer's term is the new slot. From then on
//     every commit of an older session finds that the term has moved, and stops for ever. The
//     session owns the term only if the head that it reads back carries its own txid.
//  2. It loads the state that the predecessor committed with its last batch, and continues from
//     there.
//  3. upload() stores a batch object under a key of its own. That publishes nothing. Many threads
//     may upload.
//  4. commit() appends uploaded batches: rebase on the newest head, drop what `next_seq` already
//     covers, take the next slot (slot_writer.h); after a lost race do the same again. An attempt
//     whose reply was lost needs no memory: if it landed, the drop rule finds out.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "batchloom/store/batch_upload.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/membership.h"
#include "batchloom/store/proposal.h"

namespace batchloom::store {

struct CommitReceipt {
  Slot slot;                  ///< Of the head that covers the batches.
  Step next_step;             ///< Of that head.
  std::size_t committed = 0;  ///< Batches that this call appended.
  std::size_t dropped = 0;    ///< Batches that an earlier attempt had appended.
};

/// upload() and the accessors are thread-safe; all else is one thread at a time.
class ProducerSession {
 public:
  /// Fences `producer` and loads its state. `invalid` for a bad name, `exhausted` where the table
  /// of producers is full, `corruption` where the stored state is damaged: then the fence stands
  /// all the same, and the message names its term.
  static Result<std::unique_ptr<ProducerSession>> open(const Stream& stream, std::string producer,
                                                       const CallOptions& call);

  /// Who writes, for upload_batch() in other processes.
  const Session& session() const { return session_; }
  const std::string& producer() const { return session_.producer; }
  Term term() const { return session_.term; }
  /// The first sequence number that is not committed, as of open().
  Seq next_seq() const { return next_seq_; }
  /// The state committed with the batch before next_seq(); empty for a new producer. As of open().
  const Bytes& state() const { return state_; }

  /// As upload_batch(). The result, with its state filled in, is what commit() takes; it can be
  /// committed only by this session.
  Result<PendingBatch> upload(const BatchInfo& info, std::span<const ByteSpan> parts,
                              const CallOptions& call);

  /// Publishes `batches`, in order: all of them, or an error after which some first ones may be.
  /// Safe to repeat with the same batches, and after `unknown_outcome` or `unavailable` that is
  /// what to do. `fenced`: a newer session exists; which of these batches were published is for
  /// that session to say. `invalid`: sequence numbers are not dense, a state or run table is too
  /// large, the stream has ended, or its topology has another number of HDP ranks.
  Result<CommitReceipt> commit(std::span<const PendingBatch> batches, const CallOptions& call);

  /// Marks the producer as done, for good: its row may then make room for others, and its state
  /// goes with it, so that a producer of this name that is opened later may begin anew, at batch 0
  /// with an empty state. Commits of this session are refused from now on. Safe to repeat.
  Status finish(const CallOptions& call);

  /// Ends the stream (stream_events.h), unless a newer session of this producer exists: `fenced`.
  /// Safe to repeat.
  Status end_stream(const CallOptions& call);

  /// From `membership.from_step` on, other keys decide membership. Replaces what was set for that
  /// step and is not in force yet; where the newest head has it already, nothing is committed.
  /// Digests alone are compared. `invalid` for a step below next_step, for too many bytes of keys,
  /// and after finish(); `exhausted` where the head has no room for it (trim first); `fenced` where
  /// a newer session of this producer exists. Safe to repeat.
  Result<EditReceipt> set_membership(const Membership& membership, const CallOptions& call);

 private:
  ProducerSession(const Stream& stream, std::string producer)
      : stream_(stream), reader_(stream), session_{std::move(producer), Term()} {}

  Status fence(const CallOptions& call);
  Status check_unfenced(const Head& head) const;
  Status load_state(const ProducerRow& row, const CallOptions& call);
  Status check_batches(std::span<const PendingBatch> batches) const;
  Result<HeadPtr> base_head(std::span<const PendingBatch> batches, const CallOptions& call);
  /// Uploads what the proposal refers to, then takes the slot.
  Result<bool> publish(const StoredHead& base, Proposal proposal, const PendingBatch& last,
                       const CallOptions& call);
  Result<ProducerState> place_state(const Head& head, const PendingBatch& last,
                                    const CallOptions& call);

  const Stream& stream_;
  ManifestReader reader_;
  Session session_;
  Seq next_seq_;
  Bytes state_;
  // The newest state that was stored beside, and the batch it belongs to: a lost race does not
  // store it again.
  struct PlacedState {
    Nonce batch;
    StateRef ref;
  };
  std::optional<PlacedState> placed_state_;
};

}  // namespace batchloom::store
