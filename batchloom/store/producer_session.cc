// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/producer_session.h"

#include <fmt/format.h>

#include "batchloom/store/damage.h"
#include "batchloom/store/event_proposal.h"
#include "batchloom/store/membership_edit.h"
#include "batchloom/store/read_object.h"
#include "batchloom/store/slot_writer.h"
#include "batchloom/store/upload.h"

namespace batchloom::store {

Result<std::unique_ptr<ProducerSession>> ProducerSession::open(const Stream& stream,
                                                               std::string producer,
                                                               const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_name("producer", producer));
  std::unique_ptr<ProducerSession> session(new ProducerSession(stream, std::move(producer)));
  BL_RETURN_IF_ERROR(session->fence(call));
  return session;
}

Status ProducerSession::fence(const CallOptions& call) {
  for (;;) {
    BL_ASSIGN_OR_RETURN(const HeadPtr base, reader_.latest(call));
    BL_ASSIGN_OR_RETURN(Head next, fence_producer(base->head, session_.producer, stream_.limits()));
    next.txid = stream_.random_txid();
    next.writer = {session_.producer, Term(next.slot.value)};
    const Txid mine = next.txid;
    BL_ASSIGN_OR_RETURN(const SlotOutcome outcome,
                        write_slot(stream_, reader_, *base, std::move(next), call));
    // Taken by us or by another: only the head tells. If it has moved on since, a second fence does
    // no harm.
    HeadPtr head = reader_.cached();
    if (outcome == SlotOutcome::kTaken) {
      BL_ASSIGN_OR_RETURN(head, reader_.latest(call));
    }
    if (head->head.txid != mine) continue;
    const ProducerRow& row = *head->head.find_producer(session_.producer);
    session_.term = row.term;
    next_seq_ = row.next_seq;
    stream_.counters().counter("store_fences").add();
    const Status loaded = load_state(row, call);
    if (loaded.is_ok()) return loaded;
    return loaded.with_context(fmt::format("producer {} has its new term {}, but not its state",
                                           session_.producer, session_.term.value));
  }
}

Status ProducerSession::load_state(const ProducerRow& row, const CallOptions& call) {
  if (!row.state.ref) {
    state_ = row.state.inline_bytes;
    return Status::ok();
  }
  const std::string key = data_key(row.state_object());
  BL_ASSIGN_OR_RETURN(std::optional<Bytes> state,
                      read_object(stream_.objects(), {key, row.state.ref->size_bytes}, call,
                                  [&](const objstore::ObjectData& data) {
                                    return decode_state(stream_.uuid(), row, data.bytes);
                                  }));
  if (state) {
    state_ = *std::move(state);
    return Status::ok();
  }
  // A successor may have committed another state since, and this one may have been reclaimed.
  BL_ASSIGN_OR_RETURN(const HeadPtr head, reader_.latest(call));
  BL_RETURN_IF_ERROR(check_unfenced(head->head));
  return missing_object(key, fmt::format("though slot {} names it; see `batchloom store verify`",
                                         head->head.slot.value));
}

Result<PendingBatch> ProducerSession::upload(const BatchInfo& info, std::span<const ByteSpan> parts,
                                             const CallOptions& call) {
  return upload_batch(stream_, session_, info, parts, call);
}

Status ProducerSession::check_batches(std::span<const PendingBatch> batches) const {
  for (const PendingBatch& batch : batches) {
    BL_RETURN_IF_ERROR(check_batch(session_, batch));
    if (batch.state_after.size() <= stream_.limits().state_max_bytes) continue;
    return Status::invalid(fmt::format(
        "producer {}, batch {}: a state of {} bytes; at most {} are allowed", producer(),
        batch.seq.value, batch.state_after.size(), stream_.limits().state_max_bytes));
  }
  return Status::ok();
}

Result<HeadPtr> ProducerSession::base_head(std::span<const PendingBatch> batches,
                                           const CallOptions& call) {
  const HeadPtr cached = reader_.cached();
  if (cached && !batches.empty()) {
    // Only a head that the batches continue is worth an attempt; another one may be stale.
    const ProducerRow* row = cached->head.find_producer(producer());
    if (row != nullptr && row->term == term() && row->next_seq == batches.front().seq &&
        check_appendable(cached->head, session_, batches).is_ok())
      return cached;
  }
  return reader_.latest(call);
}

Result<CommitReceipt> ProducerSession::commit(std::span<const PendingBatch> batches,
                                              const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_batches(batches));
  CommitReceipt receipt;
  BL_ASSIGN_OR_RETURN(HeadPtr base, base_head(batches, call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(const auto pending,
                        still_pending(base->head, session_, batches, stream_.safeguards()));
    const std::size_t dropped = batches.size() - pending.size();
    receipt.dropped += dropped;
    stream_.counters().counter("store_commit_dropped_items").add(dropped);
    batches = pending;
    if (batches.empty()) {
      receipt.slot = base->head.slot;
      receipt.next_step = base->head.next_step;
      return receipt;
    }
    Proposal proposal = append_batches(base->head, session_, batches, stream_.uuid(),
                                       stream_.limits(), [this] { return stream_.random_nonce(); });
    const std::size_t taken = proposal.batches;
    BL_ASSIGN_OR_RETURN(const bool committed,
                        publish(*base, std::move(proposal), batches[taken - 1], call));
    if (committed) {
      receipt.committed += taken;
      batches = batches.subspan(taken);
      base = reader_.cached();
    } else {
      BL_ASSIGN_OR_RETURN(base, reader_.latest(call));
    }
  }
}

Result<bool> ProducerSession::publish(const StoredHead& base, Proposal proposal,
                                      const PendingBatch& last, const CallOptions& call) {
  for (const PendingSegment& segment : proposal.segments) {
    const ByteSpan bytes = segment.object.bytes;
    BL_RETURN_IF_ERROR(
        upload_unique(stream_, segment_key(segment.name), std::span(&bytes, 1), call));
    stream_.counters().counter(fmt::format("store_seals_level_{}", segment.name.level)).add();
  }
  Head& next = proposal.head;
  BL_ASSIGN_OR_RETURN(next.find_producer(producer())->state, place_state(next, last, call));
  next.txid = stream_.random_txid();
  next.writer = {session_.producer, session_.term};
  BL_ASSIGN_OR_RETURN(const SlotOutcome outcome,
                      write_slot(stream_, reader_, base, std::move(next), call));
  return outcome == SlotOutcome::kCommitted;
}

Result<ProducerState> ProducerSession::place_state(const Head& head, const PendingBatch& last,
                                                   const CallOptions& call) {
  if (state_fits_inline(head, producer(), last.state_after.size(), stream_.limits())) {
    return ProducerState{.inline_bytes = last.state_after, .ref = std::nullopt};
  }
  const Encoded object = encode_state(stream_.uuid(), last.state_after);
  if (!placed_state_ || placed_state_->batch != last.nonce ||
      placed_state_->ref.crc != object.crc) {
    // Named after the last batch of this commit: no orphan before the head covers it, and then the
    // row names it.
    const DataName name{DataKind::kState, session_.producer, session_.term, last.seq,
                        stream_.random_nonce()};
    const ByteSpan bytes = object.bytes;
    BL_RETURN_IF_ERROR(upload_unique(stream_, data_key(name), std::span(&bytes, 1), call));
    placed_state_ =
        PlacedState{.batch = last.nonce,
                    .ref = {.term = name.term,
                            .seq = name.seq,
                            .nonce = name.nonce,
                            .size_bytes = static_cast<std::uint32_t>(object.bytes.size()),
                            .crc = object.crc}};
  }
  return ProducerState{.inline_bytes = {}, .ref = placed_state_->ref};
}

Status ProducerSession::finish(const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(HeadPtr base, base_head({}, call));
  for (;;) {
    // Only what has finished is ever dropped.
    if (base->head.find_producer(producer()) == nullptr) return Status::ok();
    BL_RETURN_IF_ERROR(check_unfenced(base->head));
    if (base->head.find_producer(producer())->finished) return Status::ok();
    Head next = finish_producer(base->head, session_);
    next.txid = stream_.random_txid();
    next.writer = {session_.producer, session_.term};
    BL_ASSIGN_OR_RETURN(const SlotOutcome outcome,
                        write_slot(stream_, reader_, *base, std::move(next), call));
    if (outcome == SlotOutcome::kCommitted) return Status::ok();
    BL_ASSIGN_OR_RETURN(base, reader_.latest(call));
  }
}

Status ProducerSession::check_unfenced(const Head& head) const {
  return still_pending(head, session_, {}, stream_.safeguards()).status();
}

Status ProducerSession::end_stream(const CallOptions& call) {
  const auto end = [this](const Head& head) -> Result<std::optional<Head>> {
    BL_RETURN_IF_ERROR(check_unfenced(head));
    return propose_end(head);
  };
  return commit_edit(stream_, reader_, end, call).status();
}

Result<EditReceipt> ProducerSession::set_membership(const Membership& membership,
                                                    const CallOptions& call) {
  const std::size_t size_bytes = membership.keys.size();
  if (size_bytes > kMembershipMaxBytes) {
    return Status::invalid(
        fmt::format("producer {}: membership keys of {} bytes; at most {} are allowed", producer(),
                    size_bytes, kMembershipMaxBytes));
  }
  MembershipEdit edit(stream_, session_, membership, call);
  return commit_edit(stream_, reader_, [&](const Head& head) { return edit.apply(head); }, call);
}

}  // namespace batchloom::store
