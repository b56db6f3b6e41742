// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/seal.h"

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::store {
namespace {

// Collects what a seal writes, and gives each segment its name.
class Sealer {
 public:
  Sealer(Slot slot, const StreamUuid& uuid, const std::function<Nonce()>& next_nonce)
      : slot_(slot), uuid_(uuid), next_nonce_(next_nonce) {}

  SegmentRef write(const Segment& segment) {
    PendingSegment pending{{slot_, segment.level, next_nonce_()}, encode_segment(uuid_, segment)};
    const SegmentRef ref{.slot = slot_,
                         .level = segment.level,
                         .nonce = pending.name.nonce,
                         .first_step = segment.first_step,
                         .size_bytes = static_cast<std::uint32_t>(pending.object.bytes.size()),
                         .crc = pending.object.crc};
    written_.push_back(std::move(pending));
    return ref;
  }

  std::vector<PendingSegment> take() { return std::move(written_); }

 private:
  Slot slot_;
  const StreamUuid& uuid_;
  const std::function<Nonce()>& next_nonce_;
  std::vector<PendingSegment> written_;
};

std::size_t refs_bytes(const Head& head) {
  std::size_t bytes = 0;
  for (const auto& level : head.segments) {
    for (const SegmentRef& ref : level) bytes += encoded_bound(ref);
  }
  return bytes;
}

// A full level must be moved only if something is about to come up into it: everything below is
// full too.
bool needs_room(const Head& head, std::size_t level, const Limits& limits) {
  for (std::size_t below = 0; below < level; ++below) {
    if (head.segments[below].size() < limits.arity) return false;
  }
  return true;
}

// The level whose refs should move up before another one is added to level 0; nullopt if there is
// room. The arity decides, and the highest full level comes first, so that no segment has a child
// that was written for the same slot. The byte budget is a backstop that only a history of many
// levels reaches; there a child may be of the same slot, which does no harm.
std::optional<std::size_t> full_level(const Head& head, const Limits& limits) {
  std::optional<std::size_t> fullest;
  for (std::size_t level = head.segments.size(); level-- > 0;) {
    const std::size_t count = head.segments[level].size();
    if (count >= limits.arity && needs_room(head, level, limits)) return level;
    if (count >= 2 && (!fullest || count > head.segments[*fullest].size())) fullest = level;
  }
  if (refs_bytes(head) + encoded_bound(SegmentRef{}) > limits.segment_bytes) return fullest;
  return std::nullopt;
}

// Where the steps of `level` end: at the next newer segment, or at the tail.
Step level_end(const Head& head, std::size_t level) {
  for (std::size_t newer = level; newer-- > 0;) {
    if (!head.segments[newer].empty()) return head.segments[newer].front().first_step;
  }
  return head.tail.empty() ? head.next_step : head.tail.front().first_step;
}

void move_level_up(Head& head, std::size_t level, Sealer& sealer) {
  Segment parent{.level = static_cast<std::uint32_t>(level + 1),
                 .first_step = head.segments[level].front().first_step,
                 .end_step = level_end(head, level),
                 .entries = {},
                 .children = std::move(head.segments[level])};
  head.segments[level].clear();
  if (head.segments.size() == level + 1) head.segments.emplace_back();
  head.segments[level + 1].push_back(sealer.write(parent));
}

}  // namespace

std::vector<PendingSegment> seal_tail(Head& head, Slot slot, const StreamUuid& uuid,
                                      const Limits& limits,
                                      const std::function<Nonce()>& next_nonce) {
  BL_CHECK(!head.tail.empty(), "only a tail with entries is sealed");
  Sealer sealer(slot, uuid, next_nonce);
  while (const std::optional<std::size_t> level = full_level(head, limits))
    move_level_up(head, *level, sealer);
  const Segment leaf{.level = 0,
                     .first_step = head.tail.front().first_step,
                     .end_step = head.next_step,
                     .entries = std::move(head.tail),
                     .children = {}};
  head.tail.clear();
  if (head.segments.empty()) head.segments.emplace_back();
  head.segments[0].push_back(sealer.write(leaf));
  return sealer.take();
}

std::size_t fitting_prefix(const Head& head, std::span<const Entry> entries, const Limits& limits) {
  std::size_t bytes = 0;
  for (const Entry& entry : head.tail) bytes += encoded_bound(entry);
  std::size_t count = 0;
  while (count < entries.size() && head.tail.size() + count < limits.tail_entries) {
    bytes += encoded_bound(entries[count]);
    if (bytes > limits.tail_bytes) break;
    ++count;
  }
  return count;
}

}  // namespace batchloom::store
