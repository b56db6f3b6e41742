// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/segment_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "batchloom/store/damage.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {
namespace {

// The last of `rows` (in step order) that begins at or before `step`; null if there is none.
template <class Row>
const Row* last_at_or_before(const std::vector<Row>& rows, Step step) {
  const auto after = std::ranges::upper_bound(rows, step, {}, &Row::first_step);
  return after == rows.begin() ? nullptr : &*std::prev(after);
}

// The head's segment that contains `step`. Precondition: the tail does not.
const SegmentRef* containing_ref(const Head& head, Step step) {
  for (const auto& level : head.segments) {
    if (const SegmentRef* ref = last_at_or_before(level, step)) return ref;
  }
  return nullptr;
}

// The children that do not end at or below `first_step`: each ends where the next one begins, and
// the last one where the segment does. Precondition: that is above `first_step`.
std::span<const SegmentRef> needed_children(const Segment& segment, Step first_step) {
  const std::span<const SegmentRef> children(segment.children);
  const SegmentRef* oldest = last_at_or_before(segment.children, first_step);
  if (oldest == nullptr) return children;
  return children.subspan(static_cast<std::size_t>(oldest - children.data()));
}

Status incomplete(const Head& head, Step step) {
  return corrupt_at(
      manifest_key(head.slot), 0,
      fmt::format("no entry covers step {}; see `batchloom store verify`", step.value));
}

}  // namespace

Result<SegmentPtr> SegmentReader::load(const SegmentRef& ref, const CallOptions& call) {
  if (SegmentPtr cached = lookup(ref)) return cached;
  const std::string key = segment_key(ref.name());
  BL_ASSIGN_OR_RETURN(std::optional<Segment> segment,
                      read_object(stream_.objects(), {key, ref.size_bytes}, call,
                                  [&](const objstore::ObjectData& data) {
                                    return decode_segment(stream_.uuid(), ref, data.bytes);
                                  }));
  if (!segment) {
    return missing_object(key, "though the manifest refers to it; see `batchloom store verify`");
  }
  auto loaded = std::make_shared<const Segment>(*std::move(segment));
  remember(ref, loaded);
  return SegmentPtr(loaded);
}

Result<Entry> SegmentReader::find(const Head& head, Step step, const CallOptions& call) {
  if (step < head.first_step) {
    return Status::not_found(fmt::format("step {} was trimmed: the stream begins at step {}",
                                         step.value, head.first_step.value));
  }
  if (step >= head.next_step) {
    return Status::not_found(
        fmt::format("step {} is not committed yet: slot {} ends before step {}", step.value,
                    head.slot.value, head.next_step.value));
  }
  if (const Entry* entry = last_at_or_before(head.tail, step)) return *entry;
  const SegmentRef* ref = containing_ref(head, step);
  SegmentPtr segment;  // Keeps `ref` alive while descending.
  while (ref != nullptr) {
    BL_ASSIGN_OR_RETURN(SegmentPtr next, load(*ref, call));
    segment = std::move(next);
    if (segment->level == 0) {
      const Entry* entry = last_at_or_before(segment->entries, step);
      if (entry == nullptr || entry->end_step() <= step) break;
      return *entry;
    }
    ref = last_at_or_before(segment->children, step);
  }
  return incomplete(head, step);
}

Status SegmentReader::for_each_ref(const Head& head, const CallOptions& call,
                                   const std::function<Status(const SegmentRef&)>& visit) {
  std::vector<SegmentRef> open;
  for (const auto& level : head.segments) open.insert(open.end(), level.begin(), level.end());
  while (!open.empty()) {
    const SegmentRef ref = open.back();
    open.pop_back();
    BL_RETURN_IF_ERROR(visit(ref));
    if (ref.level == 0) continue;
    BL_ASSIGN_OR_RETURN(const SegmentPtr segment, load(ref, call));
    const auto needed = needed_children(*segment, head.first_step);
    open.insert(open.end(), needed.begin(), needed.end());
  }
  return Status::ok();
}

SegmentPtr SegmentReader::lookup(const SegmentRef& ref) {
  const MutexLock lock(mutex_);
  const auto found = by_nonce_.find(ref.nonce.value);
  if (found == by_nonce_.end() || found->second->ref != ref) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return recent_.front().segment;
}

void SegmentReader::remember(const SegmentRef& ref, const SegmentPtr& segment) {
  const MutexLock lock(mutex_);
  if (by_nonce_.contains(ref.nonce.value)) return;
  recent_.push_front({ref, segment});
  by_nonce_[ref.nonce.value] = recent_.begin();
  cache_bytes_ += ref.size_bytes;
  while (cache_bytes_ > cache_bytes_max_ && recent_.size() > 1) {
    cache_bytes_ -= recent_.back().ref.size_bytes;
    by_nonce_.erase(recent_.back().ref.nonce.value);
    recent_.pop_back();
  }
}

}  // namespace batchloom::store
