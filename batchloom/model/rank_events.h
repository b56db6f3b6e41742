// SPDX-License-Identifier: Apache-2.0
// What each rank does in a step, event by event, and the proof that all ranks come to its end.
//
//  1. A rank's events are its part of the plan's one order.
//  2. In an event, all members of a task run one phase together. With d members that is d - 1 ring
//     steps; in each, every member sends one block of keys and values to the member behind it, and
//     receives one from the member before. What it sends is what it received in the step before,
//     and at first its own.
//  3. All blocks of a task have one size: that of its largest share. Shares of a ring differ by a
//     token or two for each of its samples.
//
// Why nothing waits for ever: take the event that is first, in the plan's order, of those that are
// not over. All its members have ended what comes before it in their own lists, since their lists
// follow that order; so all are at it, and each send meets the receive that is waiting for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"

namespace batchloom::model {

/// One phase of one task, as one of its members runs it.
struct RankEvent {
  Event event;
  std::uint32_t position = 0;  ///< Of the rank among the task's members.
  HdpRank send_to;             ///< The next member. The rank itself, where it is alone.
  HdpRank receive_from;        ///< The member before.
  std::uint32_t ring_steps = 0;
  std::uint32_t block_tokens =
      0;  ///< What each ring step moves, to the next member and from the last.

  friend bool operator==(const RankEvent&, const RankEvent&) = default;
};

struct RankEvents {
  std::vector<RankEvent> events;  ///< Rank by rank, each in the order in which it runs them.
  std::vector<IndexRange> ranks;  ///< By HdpRank.

  std::span<const RankEvent> of(HdpRank rank) const {
    return std::span(events).subspan(ranks[rank.value].begin, ranks[rank.value].size());
  }
};

/// The events that follow from a plan. Linear time. Precondition: check_plan(plan).
RankEvents rank_events_of(const StepPlan& plan);

/// Whether ranks that run `events` come to the end of the step, having run what the plan says:
///  1. each rank runs both phases of each of its micro-batches' tasks once, and nothing else;
///  2. it runs them in the plan's order;
///  3. whatever a member sends in an event, the next member receives from it in the same event: as
///     many blocks, of the same size.
/// Linear time. Pure. `invalid`, naming rank, place in its list and task of the first violation.
/// Precondition: check_plan(plan).
Status check_rank_events(const StepPlan& plan, const RankEvents& events);

}  // namespace batchloom::model
