// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/trim.h"

#include <algorithm>

#include "batchloom/base/check.h"

namespace batchloom::store {
namespace {

// Drops references whose whole range is below first_step, and the levels that this empties at the
// top. A reference ends where the next newer row begins.
void drop_segments(Head& head) {
  Step level_end = head.tail.empty() ? head.next_step : head.tail.front().first_step;
  for (std::vector<SegmentRef>& refs : head.segments) {  // The newest level comes first.
    if (refs.empty()) continue;
    const Step begin = refs.front().first_step;
    auto kept = std::ranges::upper_bound(refs, head.first_step, {}, &SegmentRef::first_step);
    // The one before begins at or below first_step; it is needed if it ends above.
    if (kept != refs.begin() && (kept != refs.end() || level_end > head.first_step)) --kept;
    refs.erase(refs.begin(), kept);
    level_end = begin;
  }
  while (!head.segments.empty() && head.segments.back().empty()) head.segments.pop_back();
}

void drop_entries(Head& head) {
  const auto kept = std::ranges::upper_bound(head.tail, head.first_step, {}, &Entry::end_step);
  head.tail.erase(head.tail.begin(), kept);
}

/// Of rows that each hold until the next one: the one that holds at `first` stays, and all after
/// it.
template <class Row>
void drop_replaced(std::vector<Row>& rows, Step first) {
  const auto after = std::ranges::upper_bound(rows, first, {}, &Row::from_step);
  if (after != rows.begin()) rows.erase(rows.begin(), after - 1);
}

void drop_events(Head& head) {
  head.skipped.erase(head.skipped.begin(), std::ranges::lower_bound(head.skipped, head.first_step));
  drop_replaced(head.topologies, head.first_step);
  drop_replaced(head.memberships, head.memberships_kept_from());
}

}  // namespace

Head propose_trim_intent(const Head& head, Step step) {
  Head next = successor(head);
  next.trim_intent = TrimIntent{.step = step, .slot = next.slot};
  return next;
}

Head withdraw_trim_intent(const Head& head) {
  BL_CHECK(head.trim_intent.has_value(), "there is no intent to withdraw");
  Head next = successor(head);
  next.trim_intent.reset();
  return next;
}

Head complete_trim(const Head& head, Step step, const Safeguards& safeguards) {
  // Another trim may have come further since the caller looked.
  if (step < head.first_step && safeguards.hold(Safeguard::kFirstStepMax)) step = head.first_step;
  Head next = successor(head);
  next.trim_intent.reset();
  next.first_step = std::min(head.next_step, step);
  drop_segments(next);
  drop_entries(next);
  drop_events(next);
  return next;
}

}  // namespace batchloom::store
