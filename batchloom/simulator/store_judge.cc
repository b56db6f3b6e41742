// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "batchloom/simulator/membership_keys.h"
#include "batchloom/simulator/source_state.h"

namespace batchloom::simulator {
namespace {

/// The row that a slot had for `step`; null where it had none.
const store::MembershipRow* membership_at(const SlotFacts& facts, store::Step step) {
  const auto& rows = facts.memberships;
  const auto after = std::ranges::upper_bound(rows, step, {}, &store::MembershipRow::from_step);
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

}  // namespace

void StoreJudge::session_opened(const store::ProducerSession& session) {
  if (history_.fenced_by(session.term()) != session.producer()) {
    violations_.add("I8", fmt::format("producer {}: told to own term {}, which is not its fence",
                                      session.producer(), session.term().value));
  }
  const store::ProducerRow* row = history_.head().find_producer(session.producer());
  // A session that has been fenced meanwhile was told the truth of its own time; nobody relies on
  // it any more.
  if (row == nullptr || row->term != session.term()) return;
  if (session.next_seq() != row->next_seq) {
    violations_.add("I6",
                    fmt::format("producer {}, term {}: told to go on at batch {}, but {} is next",
                                session.producer(), session.term().value, session.next_seq().value,
                                row->next_seq.value));
  }
  const std::uint64_t told = decode_source_state(session.state());
  if (told != history_.consumed(session.producer())) {
    violations_.add("I7",
                    fmt::format("producer {}, term {}: told to go on at record {}, but {} is next",
                                session.producer(), session.term().value, told,
                                history_.consumed(session.producer())));
  }
}

void StoreJudge::committed(const std::string& producer, store::Term term,
                           std::span<const store::PendingBatch> batches,
                           const store::CommitReceipt& receipt) {
  if (receipt.next_step > history_.head().next_step) {
    violations_.add("I9",
                    fmt::format("producer {}: a receipt names next step {}, it is {}", producer,
                                receipt.next_step.value, history_.head().next_step.value));
  }
  if (receipt.slot > history_.newest()) {
    violations_.add("I9", fmt::format("producer {}: a receipt names slot {}, the newest is {}",
                                      producer, receipt.slot.value, history_.newest().value));
  }
  for (const store::PendingBatch& batch : batches) {
    if (history_.published(producer, term, batch.seq) == batch.nonce) continue;
    violations_.add(
        "I9", fmt::format("producer {}, term {}: batch {} was acknowledged, but is not published",
                          producer, term.value, batch.seq.value));
  }
}

void StoreJudge::commit_refused(const std::string& producer, std::uint32_t ranks,
                                store::Slot newest_before, bool distorted) {
  ++counts_.refused_commits;
  for (store::Slot slot = newest_before; slot <= history_.newest(); ++slot) {
    const SlotFacts* facts = history_.slot(slot);
    if (facts == nullptr) continue;
    if (facts->ended || (facts->ranks != 0 && facts->ranks != ranks)) return;
  }
  if (distorted) return;
  violations_.add("I15", fmt::format("producer {}: batches for {} ranks were refused, though from "
                                     "slot {} on the stream took them",
                                     producer, ranks, newest_before.value));
}

void StoreJudge::event_told(const ToldEvent& event, const store::EditReceipt& receipt) {
  const store::StoredHead& head = *receipt.head;
  const auto fail = [&](std::string_view what) {
    violations_.add("I9", fmt::format("an event was acknowledged with slot {}, {}",
                                      head.head.slot.value, what));
  };
  const SlotFacts* facts = history_.slot(head.head.slot);
  if (facts == nullptr || facts->crc != head.crc) return fail("which was never committed so");
  if (event.ended && facts->ended != *event.ended) fail("where the stream's end is another one");
  if (event.ranks && facts->ranks != *event.ranks) fail("which has another topology");
  if (event.membership) {
    const store::Step from_step = event.membership->from_step;
    const store::MembershipRow* row = membership_at(*facts, from_step);
    if (row == nullptr || row->digest != event.membership->digest) {
      fail(fmt::format("where other keys decide membership at step {}", from_step.value));
    }
  }
  if (!event.skipped) return;
  const std::optional<store::Slot> by = history_.skipped_by(*event.skipped);
  if (!by || *by > head.head.slot) fail(fmt::format("without step {}", event.skipped->value));
}

void StoreJudge::membership_refused(store::Step from_step, bool distorted) {
  ++counts_.refused_memberships;
  const store::Step next_step = history_.head().next_step;
  if (distorted || from_step < next_step) return;
  violations_.add("I15", fmt::format("a membership from step {} on was refused, though {} is next",
                                     from_step.value, next_step.value));
}

void StoreJudge::membership_read(store::Step step, const std::optional<store::Membership>& told,
                                 store::Slot newest_before) {
  ++counts_.memberships_read;
  for (store::Slot slot = newest_before; slot <= history_.newest(); ++slot) {
    const SlotFacts* facts = history_.slot(slot);
    if (facts == nullptr) continue;
    // That of the last step stays when it is trimmed.
    const bool is_kept = step >= facts->first_step || step + 1 == facts->next_step;
    const store::MembershipRow* row = is_kept ? membership_at(*facts, step) : nullptr;
    if (row == nullptr && !told) return;
    if (row == nullptr || !told) continue;
    const bool same = row->from_step == told->from_step && row->digest == told->digest;
    if (same && told->keys == membership_keys(told->digest)) return;
  }
  violations_.add("I15", fmt::format("a reader was given a membership for step {} that no slot "
                                     "from {} on has",
                                     step.value, newest_before.value));
}

void StoreJudge::pin_told(const store::Pin& pin) {
  ++counts_.pins;
  history_.pin_told(pin);
}

void StoreJudge::pin_refused(store::Step step) {
  ++counts_.refused_pins;
  trimmed_told(step);
}

void StoreJudge::cursor_told(const std::string& group, store::Step step) {
  history_.cursor_told(group, step);
}

void StoreJudge::trimmed_told(store::Step step) {
  // The first step never falls: what it is now bounds what anybody can have seen.
  const store::Step first_step = history_.head().first_step;
  if (step < first_step) return;
  violations_.add("I13", fmt::format("told that step {} is trimmed, but the stream begins at {}",
                                     step.value, first_step.value));
}

void StoreJudge::head_read(const store::StoredHead& head, store::Slot newest_before,
                           store::Slot last_seen) {
  const store::Slot slot = head.head.slot;
  const SlotFacts* facts = history_.slot(slot);
  if (facts == nullptr || facts->crc != head.crc) {
    violations_.add(
        "I2", fmt::format("a reader was given slot {}, which was never committed so", slot.value));
  }
  if (slot < newest_before || slot < last_seen) {
    violations_.add("I2", fmt::format("a reader was given slot {} after slots {} and {}",
                                      slot.value, newest_before.value, last_seen.value));
  }
}

void StoreJudge::entry_read(store::Step step, const store::Entry& entry) {
  const store::Entry* published = history_.entry_of(step);
  if (published != nullptr && *published == entry) return;
  violations_.add("I4", fmt::format("a reader was given another entry for step {}", step.value));
}

void StoreJudge::process_ended(const std::string& process, const Status& status, bool distorted) {
  switch (status.kind()) {
    case ErrorKind::kUnavailable:
    case ErrorKind::kUnknownOutcome:
    case ErrorKind::kCancelled:
    case ErrorKind::kFenced:
    case ErrorKind::kExhausted: return;
    case ErrorKind::kCorruption:
    case ErrorKind::kInvalid:
      if (distorted) return;
      break;
    default: break;
  }
  violations_.add("I13", fmt::format("process {} ended with {}", process, status.to_string()));
}

}  // namespace batchloom::simulator
