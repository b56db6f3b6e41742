// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/codec.h"

namespace batchloom::store {
namespace {

// The largest row of each kind.
std::size_t largest_entry_bytes() {
  Entry entry;
  entry.producer.assign(63, 'x');
  entry.ranks = kInlineRunRows;
  entry.run_table.resize(run_table_max_bytes(entry.ranks, entry.steps));
  return encoded_bound(entry);
}

std::size_t largest_row_bytes() {
  ProducerRow row;
  row.producer.assign(63, 'x');
  return encoded_bound(row);
}

std::size_t largest_topology_bytes() {
  TopologyRow row;
  row.axes = "pp=1000000000 dp=1 cp=1 tp=1";  // Of the longest there are: 32 bits count all ranks.
  return encoded_bound(row);
}

std::size_t largest_membership_bytes(const Limits& limits) {
  MembershipRow row;
  row.producer.assign(63, 'x');
  row.inline_keys.resize(std::min(limits.inline_membership_max_bytes, kHeadMaxBytes));
  return encoded_bound(row);
}

Status refuse(std::string_view name, std::size_t value, std::string_view rule, std::size_t bound) {
  return Status::invalid(
      fmt::format("store limits: {} is {}; it must be {} {}", name, value, rule, bound));
}

}  // namespace

Status validate(const Limits& limits) {
  if (limits.arity < 2) return refuse("arity", limits.arity, "at least", 2);
  if (limits.tail_entries < 1) return refuse("tail_entries", limits.tail_entries, "at least", 1);
  if (limits.slots_kept < 1) return refuse("slots_kept", limits.slots_kept, "at least", 1);
  if (limits.tail_bytes < largest_entry_bytes()) {
    return refuse("tail_bytes", limits.tail_bytes, "at least", largest_entry_bytes());
  }
  if (limits.producer_bytes < largest_row_bytes()) {
    return refuse("producer_bytes", limits.producer_bytes, "at least", largest_row_bytes());
  }
  // Two segments can always become one.
  const std::size_t segments_min = 3 * encoded_bound(SegmentRef{});
  if (limits.segment_bytes < segments_min) {
    return refuse("segment_bytes", limits.segment_bytes, "at least", segments_min);
  }
  // Trimming leaves one topology and one membership; there must be room for the next of each.
  const std::size_t events_min = 2 * (largest_topology_bytes() + largest_membership_bytes(limits));
  if (limits.event_bytes < events_min) {
    return refuse("event_bytes", limits.event_bytes, "at least", events_min);
  }
  if (limits.state_max_bytes > kStateMaxBytes) {
    return refuse("state_max_bytes", limits.state_max_bytes, "at most", kStateMaxBytes);
  }
  const std::size_t sum = kHeadFixedBytes + limits.tail_bytes + limits.producer_bytes +
                          limits.inline_state_bytes + limits.segment_bytes + limits.event_bytes;
  if (sum > kHeadMaxBytes) return refuse("the sum of all budgets", sum, "at most", kHeadMaxBytes);
  return Status::ok();
}

}  // namespace batchloom::store
