// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/membership_edit.h"

#include <fmt/format.h>

#include <span>

#include "batchloom/store/event_proposal.h"
#include "batchloom/store/upload.h"

namespace batchloom::store {

MembershipEdit::MembershipEdit(const Stream& stream, const Session& session,
                               const Membership& membership, const CallOptions& call)
    : stream_(stream),
      session_(session),
      call_(call),
      row_{.from_step = membership.from_step,
           .digest = membership.digest,
           .producer = session.producer,
           .term = session.term,
           .inline_keys = {},
           .ref = {}} {
  if (membership.keys.size() <= stream.limits().inline_membership_max_bytes) {
    row_.inline_keys = membership.keys;
  } else {
    object_ = encode_membership(stream.uuid(), membership.keys);
  }
}

Result<std::optional<Head>> MembershipEdit::apply(const Head& head) {
  BL_RETURN_IF_ERROR(check_session(head));
  if (object_.bytes.empty()) return propose_membership(head, row_, stream_.limits());
  // Once another batch is committed, a reclaimer may remove what no row names.
  const Seq next_seq = head.find_producer(session_.producer)->next_seq;
  const bool is_stored = row_.ref && row_.ref->seq == next_seq;
  if (!is_stored) {
    row_.ref = MembershipRef{.seq = next_seq,
                             .nonce = stream_.random_nonce(),
                             .size_bytes = static_cast<std::uint32_t>(object_.bytes.size()),
                             .crc = object_.crc};
  }
  BL_ASSIGN_OR_RETURN(auto next, propose_membership(head, row_, stream_.limits()));
  if (next && !is_stored) BL_RETURN_IF_ERROR(upload_keys());
  return next;
}

Status MembershipEdit::check_session(const Head& head) const {
  BL_RETURN_IF_ERROR(still_pending(head, session_, {}, stream_.safeguards()).status());
  const ProducerRow& producer = *head.find_producer(session_.producer);
  if (!producer.finished || is_membership_set(head, row_.from_step, row_.digest)) {
    return Status::ok();
  }
  return Status::invalid(fmt::format("producer {}: it finished in slot {}; open it again to go on",
                                     producer.producer, producer.last_slot.value));
}

Status MembershipEdit::upload_keys() const {
  const ByteSpan bytes = object_.bytes;
  return upload_unique(stream_, data_key(row_.object()), std::span(&bytes, 1), call_);
}

}  // namespace batchloom::store
