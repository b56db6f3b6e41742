// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/stream_inventory.h"

#include <algorithm>
#include <utility>

namespace batchloom::store {

Result<StreamInventory> StreamInventory::list(const Stream& stream, const CallOptions& call) {
  constexpr std::string_view kEverything;
  return list(stream, std::span(&kEverything, 1), call);
}

Result<StreamInventory> StreamInventory::list(const Stream& stream,
                                              std::span<const std::string_view> prefixes,
                                              const CallOptions& call) {
  StreamInventory inventory;
  for (const std::string_view prefix : prefixes) {
    BL_RETURN_IF_ERROR(inventory.add_all(stream, prefix, call));
  }
  inventory.sort();
  return inventory;
}

Status StreamInventory::add_all(const Stream& stream, std::string_view prefix,
                                const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto listing, stream.objects().list(prefix, "", call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(std::vector<objstore::ListedObject> page, listing->next_page(call));
    if (page.empty()) return Status::ok();
    for (objstore::ListedObject& object : page) add(std::move(object));
  }
}

void StreamInventory::add(objstore::ListedObject object) {
  if (const auto slot = parse_manifest_key(object.key)) {
    slots_.push_back(*slot);
  } else if (const auto segment = parse_segment_key(object.key)) {
    segments_.push_back({.name = *segment, .size_bytes = object.size_bytes, .claimed = false});
  } else if (const auto data = parse_data_key(object.key)) {
    data_.push_back({.producer = intern(data->producer),
                     .kind = data->kind,
                     .claimed = false,
                     .trimmed = false,
                     .term = data->term,
                     .seq = data->seq,
                     .nonce = data->nonce,
                     .size_bytes = object.size_bytes});
  } else if (parse_pin_key(object.key)) {
    ++pins_;
  } else if (parse_live_cursor_key(object.key)) {
    ++live_cursors_;
  } else if (object.key != kFormatKey && object.key != kFloorKey) {
    foreign_.push_back(std::move(object.key));
  }
}

std::uint32_t StreamInventory::intern(const std::string& producer) {
  return producers_.try_emplace(producer, static_cast<std::uint32_t>(producers_.size()))
      .first->second;
}

void StreamInventory::sort() {
  std::ranges::sort(slots_);
  std::ranges::sort(foreign_);
  std::ranges::sort(segments_, {}, [](const SegmentObject& object) { return order_of(object); });
  std::ranges::sort(data_, {}, [](const DataObject& object) { return order_of(object); });
}

template <class Object>
Object* StreamInventory::find(std::vector<Object>& objects, const Object& wanted) {
  const auto found = std::ranges::lower_bound(
      objects, order_of(wanted), {}, [](const Object& object) { return order_of(object); });
  return found == objects.end() || order_of(*found) != order_of(wanted) ? nullptr : &*found;
}

StreamInventory::DataObject* StreamInventory::find(const DataName& name) {
  const auto producer = producers_.find(name.producer);
  if (producer == producers_.end()) return nullptr;
  return find(data_, DataObject{.producer = producer->second,
                                .kind = name.kind,
                                .term = name.term,
                                .seq = name.seq,
                                .nonce = name.nonce});
}

std::optional<StreamInventory::Claim> StreamInventory::claim(const DataName& name) {
  DataObject* const object = find(name);
  if (object == nullptr) return std::nullopt;
  return Claim{.size_bytes = object->size_bytes, .again = std::exchange(object->claimed, true)};
}

std::optional<StreamInventory::Claim> StreamInventory::claim(const SegmentName& name) {
  SegmentObject* const object = find(segments_, SegmentObject{.name = name});
  if (object == nullptr) return std::nullopt;
  return Claim{.size_bytes = object->size_bytes, .again = std::exchange(object->claimed, true)};
}

void StreamInventory::mark_trimmed(const DataName& name) {
  if (DataObject* const object = find(name)) object->trimmed = true;
}

StreamInventory::Counts StreamInventory::unclaimed() const {
  Counts counts;
  for (const SegmentObject& segment : segments_) counts.segments += segment.claimed ? 0 : 1;
  for (const DataObject& object : data_) {
    if (object.claimed) continue;
    switch (object.kind) {
      case DataKind::kBatch: ++counts.batches; break;
      case DataKind::kState: ++counts.states; break;
      case DataKind::kMembership: ++counts.memberships; break;
    }
  }
  return counts;
}

Status StreamInventory::for_each_unclaimed(
    const std::function<Status(const SegmentName&)>& visit) const {
  for (const SegmentObject& segment : segments_) {
    if (!segment.claimed) BL_RETURN_IF_ERROR(visit(segment.name));
  }
  return Status::ok();
}

Status StreamInventory::for_each_unclaimed(
    const std::function<Status(const DataName&, bool trimmed)>& visit) const {
  std::vector<std::string_view> names(producers_.size());
  for (const auto& [name, place] : producers_) names[place] = name;
  for (const DataObject& object : data_) {
    if (object.claimed) continue;
    const DataName name{.kind = object.kind,
                        .producer = std::string(names[object.producer]),
                        .term = object.term,
                        .seq = object.seq,
                        .nonce = object.nonce};
    BL_RETURN_IF_ERROR(visit(name, object.trimmed));
  }
  return Status::ok();
}

}  // namespace batchloom::store
