// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/sequence_check.h"

#include <fmt/format.h>

namespace batchloom::store {

std::optional<std::string> SequenceCheck::add(const Entry& entry) {
  const auto found = positions_.find(entry.producer);
  const Position now{.term = entry.term, .next_seq = entry.seq + 1};
  if (found == positions_.end()) {
    positions_.emplace(entry.producer, now);
    if (!from_start_ || entry.seq == Seq(0)) return std::nullopt;
    return fmt::format("step {} is batch {} of {}, the first of that producer; expected batch 0",
                       entry.first_step.value, entry.seq.value, entry.producer);
  }
  const Position last = found->second;
  if (entry.term < last.term) {
    return fmt::format(
        "step {} is of term {} of {}, after one of term {}: a fenced session went on",
        entry.first_step.value, entry.term.value, entry.producer, last.term.value);
  }
  found->second = now;
  const bool begins_again = entry.term > last.term && entry.seq == Seq(0);
  if (entry.seq == last.next_seq || begins_again) return std::nullopt;
  return fmt::format("step {} is batch {} of {} in term {}; expected batch {}: {}",
                     entry.first_step.value, entry.seq.value, entry.producer, entry.term.value,
                     last.next_seq.value,
                     entry.seq < last.next_seq ? "a batch was committed again" : "one is lost");
}

void SequenceCheck::skip() {
  from_start_ = false;
  positions_.clear();
}

std::optional<std::string> SequenceCheck::check_row(const ProducerRow& row) const {
  const auto found = positions_.find(row.producer);
  if (found == positions_.end()) {
    if (!from_start_ || row.next_seq == Seq(0)) return std::nullopt;
    return fmt::format("batch {} of {} is next, but the stream has none of its batches",
                       row.next_seq.value, row.producer);
  }
  const Position& last = found->second;
  if (row.term < last.term) {
    return fmt::format("{} has term {}, but committed in term {}", row.producer, row.term.value,
                       last.term.value);
  }
  const bool begins_again = row.term > last.term && row.next_seq == Seq(0);
  if (row.next_seq == last.next_seq || begins_again) return std::nullopt;
  return fmt::format("batch {} of {} is next, but the stream ends with batch {} of it",
                     row.next_seq.value, row.producer, last.next_seq.value - 1);
}

}  // namespace batchloom::store
