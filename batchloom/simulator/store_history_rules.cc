// SPDX-License-Identifier: Apache-2.0
// The rules of one step of the history, from head v to head v+1: entries and producers' rows.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/membership_keys.h"
#include "batchloom/simulator/source_state.h"
#include "batchloom/simulator/store_history.h"
#include "batchloom/store/keys.h"

namespace batchloom::simulator {

using store::Entry;
using store::Head;
using store::MembershipRow;
using store::ProducerRow;
using store::Step;
using store::Term;

namespace {

// What a producer's row is compared with when it had none.
ProducerRow new_row(const std::string& producer) {
  ProducerRow row;
  row.producer = producer;
  return row;
}

}  // namespace

void StoreHistory::append_entries(const Head& next) {
  for (const Entry& entry : next.tail) {
    if (entry.first_step >= head_.next_step) {
      append_entry(next, entry);
      continue;
    }
    const auto same = std::ranges::lower_bound(entries_, entry.first_step, {}, &Entry::first_step);
    if (same == entries_.end() || *same != entry) {
      violations_.add("I3", fmt::format("slot {}: the entry of step {} changed", next.slot.value,
                                        entry.first_step.value));
    }
  }
  const Step end = entries_.empty() ? Step(0) : entries_.back().end_step();
  if (next.next_step != end) {
    violations_.add("I3", fmt::format("slot {}: next step {}, but entries end at {}",
                                      next.slot.value, next.next_step.value, end.value));
  }
}

void StoreHistory::append_entry(const Head& next, const Entry& entry) {
  const std::string key = store::data_key(entry.object());
  const std::string where = fmt::format("slot {}, {}", next.slot.value, key);
  const Step end = entries_.empty() ? Step(0) : entries_.back().end_step();
  if (entry.first_step != end) violations_.add("I3", where + ": steps are not dense");

  const ProducerRow* before = head_.find_producer(entry.producer);
  if (before == nullptr || before->term != entry.term || next.writer.term != entry.term ||
      next.writer.producer != entry.producer) {
    violations_.add("I8", where + ": committed by a term that is not the producer's");
  }
  const auto earlier = std::ranges::count_if(next.tail, [&](const Entry& other) {
    return other.first_step >= head_.next_step && other.first_step < entry.first_step &&
           other.producer == entry.producer;
  });
  if (before != nullptr && entry.seq != before->next_seq + static_cast<std::uint64_t>(earlier)) {
    violations_.add("I6", fmt::format("{}: out of turn; {} was next and {} came before it", where,
                                      before->next_seq.value, earlier));
  }
  published_.try_emplace({entry.producer, entry.term, entry.seq},
                         Published{.nonce = entry.nonce, .end = entry.end_step()});
  check_object(entry, where);
  entries_.push_back(entry);
}

void StoreHistory::check_object(const Entry& entry, const std::string& where) {
  const SharedBytes* object = find(store::data_key(entry.object()));
  if (object == nullptr) return violations_.add("I5", where + ": the object does not exist");
  const std::size_t size_bytes = (*object)->size();
  if (size_bytes != entry.size_bytes) {
    violations_.add(
        "I5", fmt::format("{}: {} bytes, its entry says {}", where, size_bytes, entry.size_bytes));
  }
  const auto body = inspector_.inspect(*uuid_, entry, *object);
  if (!body.is_ok()) {
    return violations_.add("I14", fmt::format("{}: {}", where, body.status().message()));
  }
  if (body->producer != entry.producer) {
    return violations_.add("I7", where + ": not a batch of this producer");
  }
  std::uint64_t& consumed = consumed_[entry.producer];
  if (body->from != consumed) {
    violations_.add(
        "I7", fmt::format("{}: begins at record {}, but {} is next", where, body->from, consumed));
  }
  consumed = body->to;
}

void StoreHistory::check_rows(const Head& next) {
  for (const ProducerRow& row : head_.producers) {
    if (next.find_producer(row.producer) != nullptr) continue;
    if (!row.finished) {
      violations_.add("I6", fmt::format("slot {}: the row of unfinished {} is gone",
                                        next.slot.value, row.producer));
    }
    consumed_.erase(row.producer);  // A new row begins again.
  }
  for (const ProducerRow& row : next.producers) check_row(next, row);
  if (next.writer.producer.empty()) return;
  const ProducerRow* writer = next.find_producer(next.writer.producer);
  if (writer == nullptr || writer->term != next.writer.term) {
    violations_.add("I8",
                    fmt::format("slot {}: written by term {} of {}, which is not its term",
                                next.slot.value, next.writer.term.value, next.writer.producer));
  }
}

void StoreHistory::check_row(const Head& next, const ProducerRow& row) {
  const std::string where = fmt::format("slot {}, producer {}", next.slot.value, row.producer);
  const ProducerRow* found = head_.find_producer(row.producer);
  const ProducerRow before = found != nullptr ? *found : new_row(row.producer);
  const bool ours = next.writer.producer == row.producer;
  if (!ours && row != before) violations_.add("I8", where + ": changed by another producer");
  if (row.term != before.term) {
    const bool fence = row.term == Term(next.slot.value) && ours && next.writer.term == row.term &&
                       row.next_seq == before.next_seq && row.state == before.state;
    if (!fence) violations_.add("I8", where + ": the term moved without a fence");
    fences_.emplace(row.term, row.producer);
    return;
  }
  const auto appended = std::ranges::count_if(next.tail, [&](const Entry& entry) {
    return entry.first_step >= head_.next_step && entry.producer == row.producer;
  });
  if (row.next_seq != before.next_seq + static_cast<std::uint64_t>(appended)) {
    violations_.add("I6", fmt::format("{}: next_seq went from {} to {} with {} batches", where,
                                      before.next_seq.value, row.next_seq.value, appended));
  }
  if (appended > 0) {
    check_state(row);
  } else if (row.state != before.state) {
    violations_.add("I7", where + ": the state changed without a batch");
  }
}

void StoreHistory::check_state(const ProducerRow& row) {
  Bytes state = row.state.inline_bytes;
  if (row.state.ref) {
    const std::string key = store::data_key(row.state_object());
    const SharedBytes* object = find(key);
    if (object == nullptr)
      return violations_.add("I5", key + ": named by a row, but it does not exist");
    const auto decoded = store::decode_state(*uuid_, row, **object);
    if (!decoded.is_ok()) return violations_.add("I5", decoded.status().to_string());
    state = *decoded;
  }
  if (decode_source_state(state) != consumed(row.producer)) {
    violations_.add(
        "I7", fmt::format("producer {}: its state says {} records, its batches {}", row.producer,
                          decode_source_state(state), consumed(row.producer)));
  }
}

void StoreHistory::check_memberships(const Head& next) {
  for (const MembershipRow& row : next.memberships) {
    if (std::ranges::count(head_.memberships, row) == 0) check_keys(next, row);
  }
}

void StoreHistory::check_keys(const Head& next, const MembershipRow& row) {
  const std::string where =
      fmt::format("slot {}, the membership from step {}", next.slot.value, row.from_step.value);
  Bytes keys = row.inline_keys;
  if (row.ref) {
    const std::string key = store::data_key(row.object());
    if (!may_be_named(key))
      violations_.add("I5", where + ": a reclaimer may have removed its keys");
    const SharedBytes* object = find(key);
    if (object == nullptr) return violations_.add("I5", where + ": its keys do not exist");
    const auto decoded = store::decode_membership(*uuid_, row, **object);
    if (!decoded.is_ok()) return violations_.add("I5", decoded.status().to_string());
    keys = *decoded;
  }
  if (keys != membership_keys(row.digest)) {
    violations_.add("I5", where + ": its keys are not those of its digest");
  }
}

}  // namespace batchloom::simulator
