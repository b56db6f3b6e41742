// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_history.h"

#include <fmt/format.h>

#include "batchloom/store/keys.h"

namespace batchloom::simulator {

using store::DataKind;
using store::Head;
using store::Slot;

namespace {

constexpr std::size_t kViolationsKept = 8;

}  // namespace

void Violations::add(std::string_view rule, std::string text) {
  if (texts_.size() < kViolationsKept) texts_.push_back(fmt::format("{}: {}", rule, text));
}

void StoreHistory::on_put(std::string_view key, const Bytes& bytes) {
  if (key == store::kFormatKey) {
    const auto format = store::decode_format(bytes);
    if (format.is_ok()) uuid_ = format->uuid;
  } else if (key == store::kFloorKey) {
    on_floor(bytes);
  } else if (const auto slot = store::parse_manifest_key(key)) {
    on_slot(*slot, bytes);
  } else if (is_final(key)) {
    violations_.add("I3", fmt::format("{} was overwritten", key));
  }
}

bool StoreHistory::is_final(std::string_view key) const {
  if (segments_.contains(key)) return true;
  const auto name = store::parse_data_key(key);
  if (!name) return false;
  if (name->kind == DataKind::kBatch) {
    return published(name->producer, name->term, name->seq) == name->nonce;
  }
  const store::ProducerRow* row = head_.find_producer(name->producer);
  return row != nullptr && row->state.ref && row->state_object() == *name;
}

void StoreHistory::on_remove(std::string_view key) {
  if (const auto slot = store::parse_manifest_key(key)) {
    if (*slot > floor_)
      violations_.add("I11", fmt::format("{} deleted above the floor {}", key, floor_.value));
    return;
  }
  if (is_final(key) || key == store::kFormatKey || key == store::kFloorKey) {
    violations_.add("I10", fmt::format("{} deleted, though the stream needs it", key));
  }
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
    ++dead_slots_;
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
  const std::uint32_t previous_crc = crcs_.empty() ? 0 : crcs_.back();
  if (next.previous_crc != previous_crc) {
    violations_.add("I1", fmt::format("slot {} is not chained to the one before", slot.value));
  }
  if (bytes.size() > store::kHeadMaxBytes || next.tail.size() > limits_.tail_entries) {
    violations_.add("I16", fmt::format("slot {}: {} bytes, {} tail entries", slot.value,
                                       bytes.size(), next.tail.size()));
  }
  append_entries(next);
  check_rows(next);
  check_tree(next);
  crcs_.push_back(stored->crc);
  head_ = next;
}

std::optional<std::uint32_t> StoreHistory::crc_of(Slot slot) const {
  if (slot.value == 0 || slot.value > crcs_.size()) return std::nullopt;
  return crcs_[slot.value - 1];
}

std::optional<store::Nonce> StoreHistory::published(std::string_view producer, store::Term term,
                                                    store::Seq seq) const {
  const auto found = published_.find({std::string(producer), term, seq});
  if (found == published_.end()) return std::nullopt;
  return found->second;
}

std::string StoreHistory::fenced_by(store::Term term) const {
  const auto found = fences_.find(term);
  return found == fences_.end() ? std::string() : found->second;
}

std::uint64_t StoreHistory::consumed(std::string_view producer) const {
  const auto found = consumed_.find(producer);
  return found == consumed_.end() ? 0 : found->second;
}

const Bytes* StoreHistory::find(std::string_view key) const {
  const objstore::MemoryObject* object = objects_->find(key);
  return object == nullptr ? nullptr : object->bytes.get();
}

}  // namespace batchloom::simulator
