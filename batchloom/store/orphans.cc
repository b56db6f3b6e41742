// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/orphans.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "batchloom/store/entry_walk.h"

namespace batchloom::store {
namespace {

/// Whether no commit can name the object any more, given its producer's row (null: there is none).
bool is_settled(const ProducerRow* row, const DataName& name) {
  return row == nullptr || name.term < row->term ||
         (name.term == row->term && name.seq < row->next_seq);
}

/// Why that is so, for people. Precondition: it is.
std::string why_settled(const ProducerRow* row, const DataName& name) {
  if (row == nullptr) return fmt::format("{} has no row any more", name.producer);
  if (name.term < row->term) {
    return fmt::format("term {} of {} was replaced by term {}", name.term.value, name.producer,
                       row->term.value);
  }
  return fmt::format("batch {} of {} is decided, and {} is next", name.seq.value, name.producer,
                     row->next_seq.value);
}

bool names_state(const ProducerRow* row, const DataName& name) {
  return row != nullptr && row->state.ref && row->state_object() == name;
}

bool names_membership(const Head& head, const DataName& name) {
  return std::ranges::any_of(
      head.memberships, [&](const MembershipRow& row) { return row.ref && row.object() == name; });
}

/// Why a batch object goes that no entry names any more.
std::string why_unnamed(const Head& head, const DataName& name) {
  const std::string settled = why_settled(head.find_producer(name.producer), name);
  if (head.first_step == Step(0)) return "never committed: " + settled;
  return fmt::format("never committed, or trimmed before: {}, and no step from {} on is in it",
                     settled, head.first_step.value);
}

}  // namespace

Status OrphanSearch::claim_needed(SegmentReader& segments, const CallOptions& call) {
  BL_RETURN_IF_ERROR(segments.for_each_ref(after_, call, [&](const SegmentRef& ref) {
    inventory_.claim(ref.name());
    return Status::ok();
  }));
  if (!any_batch_settled()) return Status::ok();
  return for_each_entry(segments, now_, now_.first_step, call, [&](const Entry& entry) {
    if (is_needed(entry)) {
      inventory_.claim(entry.object());
    } else {
      inventory_.mark_trimmed(entry.object());
    }
    return Status::ok();
  });
}

Status OrphanSearch::for_each_orphan(const std::function<Status(Removal)>& visit) const {
  const auto visit_if = [&](std::optional<Removal> removal) {
    return removal ? visit(*std::move(removal)) : Status::ok();
  };
  BL_RETURN_IF_ERROR(inventory_.for_each_unclaimed(
      [&](const SegmentName& name) { return visit_if(judge(name)); }));
  return inventory_.for_each_unclaimed([&](const DataName& name, bool trimmed) {
    return visit_if(name.kind == DataKind::kBatch ? judge_batch(name, trimmed) : judge_small(name));
  });
}

bool OrphanSearch::any_batch_settled() const {
  bool any = false;
  const Status looked = inventory_.for_each_unclaimed([&](const DataName& name, bool) {
    any = any ||
          (name.kind == DataKind::kBatch && is_settled(after_.find_producer(name.producer), name));
    return Status::ok();
  });
  return looked.is_ok() && any;
}

bool OrphanSearch::is_needed(const Entry& entry) const {
  const Step first_step = after_.first_step;
  if (entry.first_step >= first_step) return true;
  return entry.end_step() > first_step && stream_.safeguards().hold(Safeguard::kPackTrim);
}

std::optional<Removal> OrphanSearch::judge(const SegmentName& name) const {
  if (name.slot > after_.slot && stream_.safeguards().hold(Safeguard::kSegmentProof)) {
    return std::nullopt;
  }
  return Removal{.kind = RemovalKind::kSegment,
                 .key = segment_key(name),
                 .reason = fmt::format("slot {} needs it no more, if ever", after_.slot.value)};
}

std::optional<Removal> OrphanSearch::judge_batch(const DataName& name, bool trimmed) const {
  if (!is_settled(after_.find_producer(name.producer), name)) return std::nullopt;
  return Removal{.kind = RemovalKind::kBatch,
                 .key = data_key(name),
                 .reason = trimmed ? fmt::format("trimmed: steps below {}", after_.first_step.value)
                                   : why_unnamed(after_, name)};
}

/// A state, or membership keys.
std::optional<Removal> OrphanSearch::judge_small(const DataName& name) const {
  const ProducerRow* row = after_.find_producer(name.producer);
  if (!is_settled(row, name)) return std::nullopt;
  const bool is_state = name.kind == DataKind::kState;
  const Safeguard safeguard = is_state ? Safeguard::kStateRef : Safeguard::kMembershipRef;
  const bool named = is_state ? names_state(row, name) : names_membership(after_, name);
  if (named && stream_.safeguards().hold(safeguard)) return std::nullopt;
  return Removal{.kind = is_state ? RemovalKind::kState : RemovalKind::kMembership,
                 .key = data_key(name),
                 .reason = "no row names it: " + why_settled(row, name)};
}

}  // namespace batchloom::store
