// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/event_proposal.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/codec.h"

namespace batchloom::store {
namespace {

std::size_t event_bytes(const Head& head) {
  std::size_t bytes = 0;
  for (const TopologyRow& row : head.topologies) bytes += encoded_bound(row);
  for (const Step step : head.skipped) bytes += encoded_bound(step);
  return bytes;
}

// `next` if its events keep their budget.
Result<std::optional<Head>> fitting(Head next, const Limits& limits) {
  const std::size_t bytes = event_bytes(next);
  if (bytes <= limits.event_bytes) return std::optional(std::move(next));
  return Status::exhausted(fmt::format(
      "{}: {} topologies and {} skipped steps would take {} bytes of {}; trim first (the stream "
      "begins at step {}): those of trimmed steps make room",
      manifest_key(next.slot), next.topologies.size(), next.skipped.size(), bytes,
      limits.event_bytes, next.first_step.value));
}

}  // namespace

Result<std::optional<Head>> propose_skip(const Head& head, Step step, const Limits& limits) {
  if (step < head.first_step || step >= head.next_step) {
    return Status::not_found(
        fmt::format("step {} cannot be skipped: slot {} holds steps {} to {}, the end excluded",
                    step.value, head.slot.value, head.first_step.value, head.next_step.value));
  }
  if (head.is_skipped(step)) return std::optional<Head>();
  Head next = successor(head);
  next.skipped.insert(std::ranges::upper_bound(next.skipped, step), step);
  return fitting(std::move(next), limits);
}

Result<std::optional<Head>> propose_topology(const Head& head, const model::Topology& topology,
                                             const Limits& limits) {
  const std::string axes = to_string(topology);
  if (axes.empty()) return Status::invalid("a topology without axes; write dp=1 for one rank");
  const auto holds = [&](const Head& at) {
    const TopologyRow* row = at.topology_at(at.next_step);
    return row != nullptr && row->axes == axes;
  };
  if (holds(head)) return std::optional<Head>();
  Head next = successor(head);
  std::erase_if(next.topologies,
                [&](const TopologyRow& row) { return row.from_step == next.next_step; });
  // What held before may be what is wanted again.
  if (!holds(next)) next.topologies.push_back({next.next_step, topology.hdp_size(), axes});
  return fitting(std::move(next), limits);
}

std::optional<Head> propose_end(const Head& head) {
  if (head.ended) return std::nullopt;
  Head next = successor(head);
  next.ended = true;
  return next;
}

std::optional<Head> propose_reopen(const Head& head) {
  if (!head.ended) return std::nullopt;
  Head next = successor(head);
  next.ended = false;
  return next;
}

}  // namespace batchloom::store
