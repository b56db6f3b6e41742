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
  for (const MembershipRow& row : head.memberships) bytes += encoded_bound(row);
  for (const Step step : head.skipped) bytes += encoded_bound(step);
  return bytes;
}

// `next` if its events keep their budget.
Result<std::optional<Head>> fitting(Head next, const Limits& limits) {
  const std::size_t bytes = event_bytes(next);
  if (bytes <= limits.event_bytes) return std::optional(std::move(next));
  return Status::exhausted(
      fmt::format("{}: {} topologies, {} memberships and {} skipped steps would take {} bytes of "
                  "{}; trim first "
                  "(the stream begins at step {}): those of trimmed steps make room",
                  manifest_key(next.slot), next.topologies.size(), next.memberships.size(),
                  next.skipped.size(), bytes, limits.event_bytes, next.first_step.value));
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

bool is_membership_set(const Head& head, Step from_step, const MembershipDigest& digest) {
  const MembershipRow* row = head.membership_at(from_step);
  if (row == nullptr || row->digest != digest) return false;
  return row->from_step == from_step || row->from_step < head.next_step;
}

Result<std::optional<Head>> propose_membership(const Head& head, const MembershipRow& row,
                                               const Limits& limits) {
  if (is_membership_set(head, row.from_step, row.digest)) return std::optional<Head>();
  if (row.from_step < head.next_step) {
    return Status::invalid(fmt::format(
        "membership cannot change from step {} on: steps below {} are committed in slot {}; change "
        "it from step {} or a later one on",
        row.from_step.value, head.next_step.value, head.slot.value, head.next_step.value));
  }
  Head next = successor(head);
  auto& rows = next.memberships;
  std::erase_if(rows, [&](const MembershipRow& old) { return old.from_step == row.from_step; });
  // What is in force may be what is wanted again.
  if (!is_membership_set(next, row.from_step, row.digest)) {
    rows.insert(std::ranges::upper_bound(rows, row.from_step, {}, &MembershipRow::from_step), row);
  }
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
