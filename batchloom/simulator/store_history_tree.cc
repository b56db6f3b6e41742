// SPDX-License-Identifier: Apache-2.0
// The rules of one step of the history, from head v to head v+1: the tree of segments.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/store_history.h"
#include "batchloom/store/keys.h"

namespace batchloom::simulator {

using store::Entry;
using store::Head;
using store::SegmentRef;
using store::Step;

void StoreHistory::check_tree(const Head& next) {
  for (const auto& level : next.segments) {
    if (level.size() > limits_.arity) {
      violations_.add(
          "I16", fmt::format("slot {}: {} segments in one level", next.slot.value, level.size()));
    }
    for (const SegmentRef& ref : level) check_segment(next, ref);
  }
  check_tiling(next);
}

std::optional<StoreHistory::SegmentSpan> StoreHistory::check_segment(const Head& next,
                                                                     const SegmentRef& ref) {
  const std::string key = store::segment_key(ref.name());
  if (const auto known = segments_.find(key); known != segments_.end()) {
    if (known->second.ref != ref) {
      violations_.add("I3",
                      fmt::format("slot {}, {}: referred to in another way", next.slot.value, key));
    }
    return known->second;
  }
  const auto fail = [&](std::string_view rule, std::string_view text) {
    violations_.add(rule, fmt::format("slot {}, {}: {}", next.slot.value, key, text));
    return std::nullopt;
  };
  if (ref.slot != next.slot)
    return fail("I5", "written for another slot than the first to refer to it");
  const SharedBytes* object = find(key);
  if (object == nullptr) return fail("I5", "referenced, but it does not exist");
  const auto segment = store::decode_segment(*uuid_, ref, **object);
  if (!segment.is_ok()) return fail("I5", segment.status().to_string());
  if (segment->end_step > head_.next_step)
    return fail("I3", "holds entries that the replaced head did not");
  for (const Entry& entry : segment->entries) {
    const auto same = std::ranges::lower_bound(entries_, entry.first_step, {}, &Entry::first_step);
    if (same == entries_.end() || *same != entry)
      return fail("I3", "holds an entry that was never published");
  }
  Step end = segment->entries.empty() ? segment->first_step : segment->entries.back().end_step();
  for (const SegmentRef& child : segment->children) {
    const auto known = segments_.find(store::segment_key(child.name()));
    if (known == segments_.end()) return fail("I3", "has a child that no head referred to");
    if (known->second.ref != child) return fail("I3", "refers to a child in another way");
    if (known->second.first != end) return fail("I3", "its children are not dense");
    end = known->second.end;
  }
  if (end != segment->end_step) return fail("I3", "does not end where it says");
  return segments_[key] = {ref, segment->first_step, segment->end_step};
}

void StoreHistory::check_tiling(const Head& next) {
  const Step tail = next.tail.empty() ? next.next_step : next.tail.front().first_step;
  std::optional<Step> end;  // A head that decodes begins at or below its first step.
  for (std::size_t level = next.segments.size(); level-- > 0;) {
    for (const SegmentRef& ref : next.segments[level]) {
      const auto known = segments_.find(store::segment_key(ref.name()));
      if (known == segments_.end() || known->second.first != end.value_or(ref.first_step)) {
        const Step gap = end.value_or(ref.first_step);
        return violations_.add("I3", fmt::format("slot {}: segments leave a gap at step {}",
                                                 next.slot.value, gap.value));
      }
      end = known->second.end;
    }
  }
  if (tail != end.value_or(tail)) {
    violations_.add("I3", fmt::format("slot {}: the tail begins at {}, segments end at {}",
                                      next.slot.value, tail.value, end->value));
  }
}

}  // namespace batchloom::simulator
