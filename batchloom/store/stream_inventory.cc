// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/stream_inventory.h"

#include <algorithm>
#include <utility>

namespace batchloom::store {

Result<StreamInventory> StreamInventory::list(const Stream& stream, const CallOptions& call) {
  StreamInventory inventory;
  BL_ASSIGN_OR_RETURN(const auto listing, stream.objects().list("", "", call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(std::vector<objstore::ListedObject> page, listing->next_page(call));
    if (page.empty()) break;
    for (objstore::ListedObject& object : page) inventory.add(std::move(object));
  }
  inventory.sort();
  return inventory;
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
                     .term = data->term,
                     .seq = data->seq,
                     .nonce = data->nonce,
                     .size_bytes = object.size_bytes});
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
std::optional<StreamInventory::Claim> StreamInventory::claim_in(std::vector<Object>& objects,
                                                                const Object& wanted) {
  const auto found = std::ranges::lower_bound(
      objects, order_of(wanted), {}, [](const Object& object) { return order_of(object); });
  if (found == objects.end() || order_of(*found) != order_of(wanted)) return std::nullopt;
  return Claim{.size_bytes = found->size_bytes, .again = std::exchange(found->claimed, true)};
}

std::optional<StreamInventory::Claim> StreamInventory::claim(const DataName& name) {
  const auto producer = producers_.find(name.producer);
  if (producer == producers_.end()) return std::nullopt;
  return claim_in(data_, DataObject{.producer = producer->second,
                                    .kind = name.kind,
                                    .term = name.term,
                                    .seq = name.seq,
                                    .nonce = name.nonce});
}

std::optional<StreamInventory::Claim> StreamInventory::claim(const SegmentName& name) {
  return claim_in(segments_, SegmentObject{.name = name});
}

StreamInventory::Counts StreamInventory::unclaimed() const {
  Counts counts;
  for (const SegmentObject& segment : segments_) counts.segments += segment.claimed ? 0 : 1;
  for (const DataObject& object : data_) {
    if (object.claimed) continue;
    ++(object.kind == DataKind::kState ? counts.states : counts.batches);
  }
  return counts;
}

}  // namespace batchloom::store
