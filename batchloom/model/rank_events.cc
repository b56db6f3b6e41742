// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/rank_events.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchloom::model {
namespace {

constexpr std::uint32_t kPhases = 2;

std::string_view to_string(Phase phase) {
  return phase == Phase::kForward ? "forward" : "backward";
}

std::vector<std::uint32_t> block_sizes_of(const StepPlan& plan) {
  std::vector<std::uint32_t> block_tokens(plan.tasks.size(), 1);
  for (const MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t tokens = 0;
    for (const Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
    std::uint32_t& largest = block_tokens[micro_batch.task.value];
    largest = std::max(largest, tokens);
  }
  return block_tokens;
}

/// How the member at `position` must take part in `event`.
RankEvent make_event(std::span<const HdpRank> members, const Event& event, std::uint32_t position,
                     std::uint32_t block_tokens) {
  const auto size = static_cast<std::uint32_t>(members.size());
  return {.event = event,
          .position = position,
          .send_to = members[position + 1 == size ? 0 : position + 1],
          .receive_from = members[position == 0 ? size - 1 : position - 1],
          .ring_steps = size - 1,
          .block_tokens = block_tokens};
}

Status violation(HdpRank rank, std::uint32_t place, const Event& event, std::string_view what) {
  return Status::invalid(fmt::format("event {} of rank {} (task {} {}) {}", place, rank.value,
                                     event.task.value, to_string(event.phase), what));
}

/// What is wrong with `is`, at `place` of the rank's list, where `must` belongs.
Status explain(const StepPlan& plan, HdpRank rank, std::uint32_t place, const RankEvent& is,
               const RankEvent& must) {
  if (is.event.task.value >= plan.tasks.size() || is.event.phase > Phase::kBackward) {
    return violation(rank, place, is.event, "is none of the plan's");
  }
  if (is.event != must.event) {
    return violation(rank, place, is.event,
                     fmt::format("stands where the plan has task {} {}", must.event.task.value,
                                 to_string(must.event.phase)));
  }
  if (is.position != must.position) {
    return violation(rank, place, is.event,
                     fmt::format("says that the rank is member {} of the ring; it is member {}",
                                 is.position, must.position));
  }
  return violation(
      rank, place, is.event,
      fmt::format("sends {} x {} tokens to rank {} and receives from rank {}, where the ring "
                  "wants {} x {} to rank {} and from rank {}",
                  is.ring_steps, is.block_tokens, is.send_to.value, is.receive_from.value,
                  must.ring_steps, must.block_tokens, must.send_to.value, must.receive_from.value));
}

Status wrong_count(const StepPlan& plan, const RankEvents& events, HdpRank rank) {
  return Status::invalid(fmt::format("rank {} runs {} events; its micro-batches have {}",
                                     rank.value, events.ranks[rank.value].size(),
                                     plan.micro_batches_of(rank).size() * kPhases));
}

/// Whether there is a list for each rank of the plan, inside of what there is.
Status check_lists(const StepPlan& plan, const RankEvents& events) {
  if (events.ranks.size() != plan.ranks.size()) {
    return Status::invalid(fmt::format("there are events of {} ranks; the plan has {}",
                                       events.ranks.size(), plan.ranks.size()));
  }
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    const IndexRange list = events.ranks[rank];
    if (list.begin <= list.end && list.end <= events.events.size()) continue;
    return Status::invalid(fmt::format("rank {} has events [{}, {}) of {}", rank, list.begin,
                                       list.end, events.events.size()));
  }
  return Status::ok();
}

std::uint32_t stages_of(const StepPlan& plan) {
  return plan.topology.extent(Axis::kPp);
}

/// What a stage of all ranks runs, in the order of beats: 1F1B.
std::vector<Event> order_of_stage(const StepPlan& plan, std::uint32_t stage) {
  const std::vector<std::uint32_t> slots = least_slots(plan);
  std::vector<TaskIndex> tasks;
  tasks.reserve(slots.size());
  for (std::uint32_t task = 0; task < slots.size(); ++task) tasks.emplace_back(task);
  const auto slot_of = [&](TaskIndex task) { return slots[task.value]; };
  std::ranges::stable_sort(tasks, {}, slot_of);
  const std::uint32_t in_flight = stages_of(plan) - stage;
  std::vector<Event> order;
  order.reserve(plan.events.size());
  auto forward = tasks.begin();
  for (const TaskIndex backward : tasks) {
    for (; forward != tasks.end() && slot_of(*forward) < slot_of(backward) + in_flight; ++forward) {
      order.push_back({*forward, Phase::kForward});
    }
    order.push_back({backward, Phase::kBackward});
  }
  return order;
}

/// Each rank's part of `order`.
RankEvents make_lists(const StepPlan& plan, std::span<const Event> order) {
  RankEvents made;
  made.events.resize(plan.micro_batches.size() * kPhases);
  made.ranks.reserve(plan.ranks.size());
  std::vector<std::uint32_t> next;  // By rank: where its next event goes.
  next.reserve(plan.ranks.size());
  for (const IndexRange& rank : plan.ranks) {
    made.ranks.push_back({rank.begin * kPhases, rank.end * kPhases});
    next.push_back(rank.begin * kPhases);
  }
  const std::vector<std::uint32_t> block_tokens = block_sizes_of(plan);
  for (const Event& event : order) {
    const std::span<const HdpRank> members = plan.members_of(plan.tasks[event.task.value]);
    for (std::uint32_t position = 0; position < members.size(); ++position) {
      made.events[next[members[position].value]++] =
          make_event(members, event, position, block_tokens[event.task.value]);
    }
  }
  return made;
}

/// Whether `events` are each rank's part of `order`.
Status check_order(const StepPlan& plan, std::span<const Event> order, const RankEvents& events) {
  BL_RETURN_IF_ERROR(check_lists(plan, events));
  std::vector<std::uint32_t> next;  // By rank: its next event.
  next.reserve(plan.ranks.size());
  for (const IndexRange& list : events.ranks) next.push_back(list.begin);
  const std::vector<std::uint32_t> block_tokens = block_sizes_of(plan);
  for (const Event& event : order) {
    const std::span<const HdpRank> members = plan.members_of(plan.tasks[event.task.value]);
    for (std::uint32_t position = 0; position < members.size(); ++position) {
      const HdpRank rank = members[position];
      const IndexRange list = events.ranks[rank.value];
      const std::uint32_t place = next[rank.value]++;
      if (place == list.end) return wrong_count(plan, events, rank);
      const RankEvent must = make_event(members, event, position, block_tokens[event.task.value]);
      if (events.events[place] == must) continue;
      return explain(plan, rank, place - list.begin, events.events[place], must);
    }
  }
  for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    if (next[rank.value] != events.ranks[rank.value].end) return wrong_count(plan, events, rank);
  }
  return Status::ok();
}

}  // namespace

std::vector<std::uint32_t> least_slots(const StepPlan& plan) {
  std::vector<std::uint32_t> slots(plan.tasks.size(), 0);
  std::vector<std::uint32_t> next(plan.ranks.size(), 0);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    const auto members = plan.members_of(plan.tasks[task]);
    for (const HdpRank rank : members) slots[task] = std::max(slots[task], next[rank.value]);
    for (const HdpRank rank : members) next[rank.value] = slots[task] + 1;
  }
  return slots;
}

RankEvents rank_events_of(const StepPlan& plan) {
  return make_lists(plan, plan.events);
}

std::vector<RankEvents> stage_events_of(const StepPlan& plan) {
  if (stages_of(plan) == 1) return {rank_events_of(plan)};
  std::vector<RankEvents> stages;
  for (std::uint32_t stage = 0; stage < stages_of(plan); ++stage) {
    stages.push_back(make_lists(plan, order_of_stage(plan, stage)));
  }
  return stages;
}

Status check_rank_events(const StepPlan& plan, const RankEvents& events) {
  return check_order(plan, plan.events, events);
}

Status check_stage_events(const StepPlan& plan, std::span<const RankEvents> stages) {
  if (stages.size() != stages_of(plan)) {
    return Status::invalid(fmt::format("there are events of {} pipeline stages; the plan has {}",
                                       stages.size(), stages_of(plan)));
  }
  for (std::uint32_t stage = 0; stages.size() > 1 && stage < stages.size(); ++stage) {
    const Status status = check_order(plan, order_of_stage(plan, stage), stages[stage]);
    if (!status.is_ok()) return status.with_context(fmt::format("stage {}", stage));
  }
  return check_rank_events(plan, stages.back());
}

}  // namespace batchloom::model
