// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/edit_rules.h"
#include "batchloom/store/keys.h"

namespace batchloom::simulator {

using store::DataKind;
using store::DataName;
using store::Entry;
using store::Head;
using store::ProducerRow;
using store::Slot;
using store::Step;

void StoreHistory::on_put(std::string_view key, const Bytes& bytes) {
  if (key == store::kFormatKey) {
    const auto format = store::decode_format(bytes);
    if (format.is_ok()) uuid_ = format->uuid;
  } else if (key == store::kFloorKey) {
    on_floor(bytes);
  } else if (const auto slot = store::parse_manifest_key(key)) {
    on_slot(*slot, bytes);
  } else if (key.starts_with(store::kPinPrefix)) {
    pins_.on_put(*uuid_, key, bytes);
  } else if (is_needed(key)) {
    violations_.add("I3", fmt::format("{} was overwritten", key));
  }
}

bool StoreHistory::is_needed(std::string_view key) const {
  if (key == store::kFormatKey || key == store::kFloorKey) return true;
  if (const auto segment = segments_.find(key); segment != segments_.end()) {
    return segment->second.end > head_.first_step;
  }
  const auto name = store::parse_data_key(key);
  if (!name) return false;
  if (name->kind == DataKind::kBatch) {
    const Published* published = find_published(*name);
    return published != nullptr && published->end > head_.first_step;
  }
  if (name->kind == DataKind::kMembership) {
    return std::ranges::any_of(head_.memberships, [&](const store::MembershipRow& row) {
      return row.ref && row.object() == *name;
    });
  }
  const ProducerRow* row = head_.find_producer(name->producer);
  return row != nullptr && row->state.ref && row->state_object() == *name;
}

bool StoreHistory::may_be_named(std::string_view key) const {
  if (const auto segment = store::parse_segment_key(key)) return segment->slot > newest();
  const auto name = store::parse_data_key(key);
  if (!name) return false;
  const ProducerRow* row = head_.find_producer(name->producer);
  return row != nullptr && name->term == row->term && name->seq >= row->next_seq;
}

void StoreHistory::on_remove(std::string_view key) {
  if (key.starts_with(store::kPinPrefix)) return pins_.on_remove(key);
  if (const auto slot = store::parse_manifest_key(key)) {
    if (*slot > floor_)
      violations_.add("I11", fmt::format("{} deleted above the floor {}", key, floor_.value));
    return;
  }
  if (is_needed(key)) {
    violations_.add("I10", fmt::format("{} deleted, though the stream needs it", key));
  } else if (may_be_named(key)) {
    violations_.add("I10", fmt::format("{} deleted, though it may yet be committed", key));
  }
  count_removal(key);
}

void StoreHistory::count_removal(std::string_view key) {
  if (key.starts_with(store::kSegmentPrefix)) {
    ++(is_referenced(key) ? counts_.trimmed_segments_removed : counts_.orphaned_segments_removed);
  }
  const auto name = store::parse_data_key(key);
  if (!name || name->kind != DataKind::kBatch) return;
  ++(find_published(*name) == nullptr ? counts_.orphaned_batches_removed
                                      : counts_.trimmed_batches_removed);
}

void StoreHistory::pin_told(const store::Pin& pin) {
  pins_.pin_told(pin);
  pins_.check(head_.first_step);
}

void StoreHistory::cursor_told(const std::string& group, Step step) {
  pins_.cursor_told(group, step);
  pins_.check(head_.first_step);
}

void StoreHistory::on_floor(const Bytes& bytes) {
  const auto floor = store::decode_floor(*uuid_, bytes);
  if (!floor.is_ok()) return violations_.add("I11", floor.status().to_string());
  if (*floor < floor_) {
    violations_.add("I11", fmt::format("the floor fell from {} to {}", floor_.value, floor->value));
  }
  if (floor->value >= std::max<std::uint64_t>(newest().value, 1)) {
    violations_.add("I11",
                    fmt::format("the floor {} reached the head {}", floor->value, newest().value));
  }
  floor_ = *floor;
}

void StoreHistory::on_slot(Slot slot, const Bytes& bytes) {
  if (slot <= newest()) {
    ++counts_.dead_slots;
    if (slot > floor_) violations_.add("I1", fmt::format("slot {} was written twice", slot.value));
    return;
  }
  if (slot != newest() + 1) {
    return violations_.add("I2",
                           fmt::format("slot {} follows slot {}", slot.value, newest().value));
  }
  const auto stored = store::decode_head(*uuid_, slot, bytes);
  if (!stored.is_ok()) return violations_.add("I1", stored.status().to_string());
  const Head& next = stored->head;
  const std::uint32_t previous_crc = slots_.empty() ? 0 : slots_.back().crc;
  if (next.previous_crc != previous_crc) {
    violations_.add("I1", fmt::format("slot {} is not chained to the one before", slot.value));
  }
  if (bytes.size() > store::kHeadMaxBytes || next.tail.size() > limits_.tail_entries) {
    violations_.add("I16", fmt::format("slot {}: {} bytes, {} tail entries", slot.value,
                                       bytes.size(), next.tail.size()));
  }
  if (!slots_.empty()) check_edit(head_, next, violations_);
  append_entries(next);
  check_rows(next);
  check_memberships(next);
  check_tree(next);
  note(*stored);
  pins_.check(head_.first_step);
}

void StoreHistory::note(const store::StoredHead& stored) {
  const Head& next = stored.head;
  if (next.trim_intent && next.trim_intent != head_.trim_intent) ++counts_.intents;
  if (next.first_step > head_.first_step) {
    ++counts_.trims;
  } else if (head_.trim_intent && !next.trim_intent) {
    ++counts_.withdrawals;
  }
  for (const Step step : next.skipped) {
    if (skips_.try_emplace(step, next.slot).second) ++counts_.skips;
  }
  if (next.ended != head_.ended) ++(next.ended ? counts_.ends : counts_.reopenings);
  const auto newest_of = [](const Head& head) {
    return head.topologies.empty() ? store::TopologyRow() : head.topologies.back();
  };
  if (newest_of(next) != newest_of(head_)) ++counts_.topologies;
  const bool is_trim = next.trim_intent != head_.trim_intent;
  if (!is_trim && next.memberships != head_.memberships) {
    ++counts_.memberships;
    if (next.memberships.size() <= head_.memberships.size()) ++counts_.replaced_memberships;
  }
  slots_.push_back({.crc = stored.crc,
                    .first_step = next.first_step,
                    .next_step = next.next_step,
                    .ended = next.ended,
                    .ranks = newest_of(next).ranks,
                    .memberships = next.memberships});
  head_ = next;
}

const SlotFacts* StoreHistory::slot(Slot slot) const {
  if (slot.value == 0 || slot.value > slots_.size()) return nullptr;
  return &slots_[slot.value - 1];
}

const Entry* StoreHistory::entry_of(Step step) const {
  const auto after = std::ranges::upper_bound(entries_, step, {}, &Entry::first_step);
  if (after == entries_.begin() || std::prev(after)->end_step() <= step) return nullptr;
  return &*std::prev(after);
}

std::optional<Slot> StoreHistory::skipped_by(Step step) const {
  const auto found = skips_.find(step);
  if (found == skips_.end()) return std::nullopt;
  return found->second;
}

const StoreHistory::Published* StoreHistory::find_published(const DataName& name) const {
  const auto found = published_.find({name.producer, name.term, name.seq});
  if (found == published_.end() || found->second.nonce != name.nonce) return nullptr;
  return &found->second;
}

std::optional<store::Nonce> StoreHistory::published(std::string_view producer, store::Term term,
                                                    store::Seq seq) const {
  const auto found = published_.find({std::string(producer), term, seq});
  if (found == published_.end()) return std::nullopt;
  return found->second.nonce;
}

std::string StoreHistory::fenced_by(store::Term term) const {
  const auto found = fences_.find(term);
  return found == fences_.end() ? std::string() : found->second;
}

std::uint64_t StoreHistory::consumed(std::string_view producer) const {
  const auto found = consumed_.find(producer);
  return found == consumed_.end() ? 0 : found->second;
}

const SharedBytes* StoreHistory::find(std::string_view key) const {
  const objstore::MemoryObject* object = objects_->find(key);
  return object == nullptr ? nullptr : &object->bytes;
}

}  // namespace batchloom::simulator
