// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/entry_walk.h"

#include <ranges>
#include <vector>

namespace batchloom::store {
namespace {

// One walk through the tree of a head.
class EntryWalk {
 public:
  EntryWalk(SegmentReader& segments, Step from, const CallOptions& call,
            const std::function<Status(const Entry&)>& visit)
      : segments_(segments), from_(from), call_(call), visit_(visit) {}

  Status walk_entries(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) BL_RETURN_IF_ERROR(visit_(entry));
    return Status::ok();
  }

  /// The segments of `refs`, which are in step order; the last ends at `end`.
  Status walk_segments(const std::vector<SegmentRef>& refs, Step end) {
    for (std::size_t i = 0; i < refs.size(); ++i) {
      const Step segment_end = i + 1 < refs.size() ? refs[i + 1].first_step : end;
      if (segment_end <= from_) continue;
      BL_ASSIGN_OR_RETURN(const SegmentPtr segment, segments_.load(refs[i], call_));
      BL_RETURN_IF_ERROR(walk_entries(segment->entries));
      BL_RETURN_IF_ERROR(walk_segments(segment->children, segment->end_step));
    }
    return Status::ok();
  }

 private:
  SegmentReader& segments_;
  const Step from_;
  const CallOptions& call_;
  const std::function<Status(const Entry&)>& visit_;
};

}  // namespace

Status for_each_entry(SegmentReader& segments, const Head& head, Step from, const CallOptions& call,
                      const std::function<Status(const Entry&)>& visit) {
  std::vector<SegmentRef> roots;  // In step order: higher levels are older.
  for (const auto& level : head.segments | std::views::reverse) {
    roots.insert(roots.end(), level.begin(), level.end());
  }
  const Step tail_begin = head.tail.empty() ? head.next_step : head.tail.front().first_step;
  EntryWalk walk(segments, from, call, visit);
  BL_RETURN_IF_ERROR(walk.walk_segments(roots, tail_begin));
  return walk.walk_entries(head.tail);
}

}  // namespace batchloom::store
