// SPDX-License-Identifier: Apache-2.0
// What each rank does in a step, event by event, and the proof that all ranks come to its end.
//
//  1. A rank's events are its part of the plan's one order.
//  2. In an event, all members of a task run one phase together. With d members that is d - 1 ring
//     steps; in each, every member sends one block of keys and values to the member behind it, and
//     receives one from the member before. What it sends is what it received in the step before,
//     and at first its own.
//  3. All blocks of a task have one size: that of its largest share, a filler's being one token.
//     Shares of a ring differ by a token or two for each of its samples.
//
// Why nothing waits for ever: take the event that is first, in the plan's order, of those that are
// not over. All its members have ended what comes before it in their own lists, since their lists
// follow that order; so all are at it, and each send meets the receive that is waiting for it.
//
// With P pipeline stages, each stage of a rank has a list of its own:
//
//  4. Stage p runs slot k (step_plan.h) forward at beat 2k + p, and backward at beat
//     2k + 2P - 1 - p. On a stage, the order of beats is 1F1B: the forward of slot f comes before
//     the backward of slot b where 2f + p < 2b + 2P - 1 - p, which is f < b + P - p.
//  5. Rings join the same stage of their members. Forward, a stage first receives one block of
//     activations from the stage before, of the same rank, and at last sends one to the stage
//     behind; backward it is gradients, the other way. The first and the last stage have one
//     neighbour. Sends do not wait for their receivers: between stages p and p + 1 of a rank, at
//     most P - p blocks of a direction are under way.
//  6. Between two stages, blocks of one direction come in the order in which they are sent: on both
//     stages, that of the slots.
//
// Why nothing waits for ever: of the events that are not over, take one with the least beat. All
// its members are at it, as above. What it receives was sent at the beat before, and so is there.
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
  /// What each ring step moves, to the next member and from the one before; and what moves from
  /// stage to stage.
  std::uint32_t block_tokens = 0;

  friend bool operator==(const RankEvent&, const RankEvent&) = default;
};

struct RankEvents {
  std::vector<RankEvent> events;  ///< Rank by rank, each in the order in which it runs them.
  std::vector<IndexRange> ranks;  ///< By HdpRank.

  std::span<const RankEvent> of(HdpRank rank) const {
    return std::span(events).subspan(ranks[rank.value].begin, ranks[rank.value].size());
  }
  friend bool operator==(const RankEvents&, const RankEvents&) = default;
};

/// By task, its slot (step_plan.h), from 0: one after the latest of what its members run before. So
/// the n-th micro-batches of all ranks share a slot where no ring couples others. Linear time.
/// Precondition: check_plan_structure(plan).
std::vector<std::uint32_t> least_slots(const StepPlan& plan);

/// The events that follow from a plan; with pipeline stages, those of the last. Linear time.
/// Precondition: check_plan(plan).
RankEvents rank_events_of(const StepPlan& plan);

/// The same for each pipeline stage. Linear time. Precondition: check_plan(plan).
std::vector<RankEvents> stage_events_of(const StepPlan& plan);

/// Whether ranks that run `events` come to the end of the step, having run what the plan says:
///  1. each rank runs both phases of each of its micro-batches' tasks once, and nothing else;
///  2. it runs them in the plan's order;
///  3. whatever a member sends in an event, the next member receives from it in the same event: as
///     many blocks, of the same size.
/// Linear time. Pure. `invalid`, naming rank, place in its list and task of the first violation.
/// Precondition: check_plan(plan).
Status check_rank_events(const StepPlan& plan, const RankEvents& events);

/// The same for each pipeline stage, its order being that of beats, and the plan's too on the last
/// one. So what a stage sends to another is what that receives: as many blocks, in the same order,
/// of the same size. The message of a violation names the stage as well.
Status check_stage_events(const StepPlan& plan, std::span<const RankEvents> stages);

}  // namespace batchloom::model
