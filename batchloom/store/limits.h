// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "batchloom/base/status.h"

namespace batchloom::store {

/// Sizes that keep a head small at any history. The defaults are the product's; simulations draw
/// tiny ones so that every path is taken within a few commits. All processes on a stream should use
/// the same values: a commit that cannot keep its own is `exhausted`.
struct Limits {
  /// Entries in the tail, encoded. More are sealed into a segment.
  std::size_t tail_bytes = std::size_t{28} << 10;
  /// As a count, for simulations; the bytes bind in the product.
  std::size_t tail_entries = SIZE_MAX;
  /// Producer rows without their inline states. A fence that finds no room is `exhausted`.
  std::size_t producer_bytes = std::size_t{16} << 10;
  /// Inline states of all producers together. A state that finds no room is stored beside.
  std::size_t inline_state_bytes = std::size_t{8} << 10;
  /// A larger state is always stored beside.
  std::size_t inline_state_max_bytes = 256;
  /// The largest state a producer may commit.
  std::size_t state_max_bytes = std::size_t{64} << 20;
  /// Segment references, all levels.
  std::size_t segment_bytes = std::size_t{8} << 10;
  /// Topologies, memberships and SKIPs. An event that finds no room is `exhausted` until steps are
  /// trimmed.
  std::size_t event_bytes = std::size_t{3} << 10;
  /// Larger membership keys are stored beside.
  std::size_t inline_membership_max_bytes = 256;
  /// Children of a segment above level 0.
  std::size_t arity = 64;
  /// The reclaimer keeps this many of the newest slots.
  std::uint64_t slots_kept = 1024;
};

/// `invalid` names the value that cannot work: an arity below 2, a budget too small for its largest
/// row, or budgets that together exceed a head.
Status validate(const Limits& limits);

/// No state is larger, whatever the limits say.
inline constexpr std::size_t kStateMaxBytes = std::size_t{1} << 30;

/// Nor are membership keys.
inline constexpr std::size_t kMembershipMaxBytes = std::size_t{16} << 20;

/// No head is larger than this.
inline constexpr std::size_t kHeadMaxBytes = std::size_t{64} << 10;

}  // namespace batchloom::store
