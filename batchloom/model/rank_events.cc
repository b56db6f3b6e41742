// SPDX-License-Identifier: Apache-2.0
#include "batchloom/model/rank_events.h"

#include <fmt/core.h>

#include <algorithm>

namespace batchloom::model {
namespace {

constexpr std::uint32_t kPhases = 2;

std::uint32_t row_of(const Event& event) {
  return event.task.value * kPhases + static_cast<std::uint32_t>(event.phase);
}

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

/// By row_of(): where the event lies in the plan's order.
std::vector<std::uint32_t> places_of(const StepPlan& plan) {
  std::vector<std::uint32_t> places(plan.tasks.size() * kPhases, 0);
  for (std::uint32_t place = 0; place < plan.events.size(); ++place) {
    places[row_of(plan.events[place])] = place;
  }
  return places;
}

/// How `rank`, the member at `position`, must take part in `event`.
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

/// One rank's list against the plan.
class RankCheck {
 public:
  explicit RankCheck(const StepPlan& plan)
      : plan_(plan), places_(places_of(plan)), block_tokens_(block_sizes_of(plan)) {}

  Status check(HdpRank rank, std::span<const RankEvent> events) const {
    const std::size_t expected = plan_.micro_batches_of(rank).size() * kPhases;
    for (std::size_t i = 0; i < events.size(); ++i) {
      BL_RETURN_IF_ERROR(check_ring(rank, i, events[i]));
      if (i > 0) BL_RETURN_IF_ERROR(check_order(rank, i, events[i - 1].event, events[i].event));
    }
    if (events.size() == expected) return Status::ok();
    return Status::invalid(fmt::format("rank {} runs {} events; its micro-batches have {}",
                                       rank.value, events.size(), expected));
  }

 private:
  /// An event is the rank's own, and its neighbours are those of the ring.
  Status check_ring(HdpRank rank, std::size_t i, const RankEvent& is) const {
    const Event& event = is.event;
    if (event.task.value >= plan_.tasks.size() || event.phase > Phase::kBackward) {
      return violation(rank, i, event, "is none of the plan's");
    }
    const std::span<const HdpRank> members = plan_.members_of(plan_.tasks[event.task.value]);
    if (is.position >= members.size() || members[is.position] != rank) {
      return violation(rank, i, event, fmt::format("has another member at {}", is.position));
    }
    const RankEvent must = make_event(members, event, is.position, block_tokens_[event.task.value]);
    if (is == must) return Status::ok();
    return violation(
        rank, i, event,
        fmt::format("sends {} x {} tokens to rank {} and receives from rank {}, where the ring "
                    "wants {} x {} to rank {} and from rank {}",
                    is.ring_steps, is.block_tokens, is.send_to.value, is.receive_from.value,
                    must.ring_steps, must.block_tokens, must.send_to.value,
                    must.receive_from.value));
  }

  Status check_order(HdpRank rank, std::size_t i, const Event& before, const Event& event) const {
    if (places_[row_of(before)] < places_[row_of(event)]) return Status::ok();
    return violation(
        rank, i, event,
        fmt::format("follows task {} {}, which the plan has {}", before.task.value,
                    to_string(before.phase), before == event ? "only once" : "after it"));
  }

  static Status violation(HdpRank rank, std::size_t i, const Event& event, std::string_view what) {
    return Status::invalid(fmt::format("event {} of rank {} (task {} {}) {}", i, rank.value,
                                       event.task.value, to_string(event.phase), what));
  }

  const StepPlan& plan_;
  const std::vector<std::uint32_t> places_;
  const std::vector<std::uint32_t> block_tokens_;
};

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
  if (events.ranks.size() != plan.ranks.size()) {
    return Status::invalid(fmt::format("there are events of {} ranks; the plan has {}",
                                       events.ranks.size(), plan.ranks.size()));
  }
  const RankCheck check(plan);
  for (HdpRank rank; rank.value < plan.ranks.size(); ++rank) {
    const IndexRange range = events.ranks[rank.value];
    if (range.begin > range.end || range.end > events.events.size()) {
      return Status::invalid(fmt::format("rank {} has events [{}, {}) of {}", rank.value,
                                         range.begin, range.end, events.events.size()));
    }
    BL_RETURN_IF_ERROR(check.check(rank, events.of(rank)));
  }
  return Status::ok();
}

}  // namespace batchloom::model
