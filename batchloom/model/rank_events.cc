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
  std::vector<std::uint32_t> block_tokens(plan.tasks.size(), 0);
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

}  // namespace

RankEvents rank_events_of(const StepPlan& plan) {
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
  for (const Event& event : plan.events) {
    const std::span<const HdpRank> members = plan.members_of(plan.tasks[event.task.value]);
    for (std::uint32_t position = 0; position < members.size(); ++position) {
      made.events[next[members[position].value]++] =
          make_event(members, event, position, block_tokens[event.task.value]);
    }
  }
  return made;
}

Status check_rank_events(const StepPlan& plan, const RankEvents& events) {
  BL_RETURN_IF_ERROR(check_lists(plan, events));
  std::vector<std::uint32_t> next;  // By rank: its next event.
  next.reserve(plan.ranks.size());
  for (const IndexRange& list : events.ranks) next.push_back(list.begin);
  const std::vector<std::uint32_t> block_tokens = block_sizes_of(plan);
  for (const Event& event : plan.events) {
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

}  // namespace batchloom::model
