// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace batchloom::planning {

/// What a task takes in each phase, on each of its members.
struct PhaseTimes {
  std::uint64_t forward_ns = 0;
  std::uint64_t backward_ns = 0;

  std::uint64_t total_ns() const { return forward_ns + backward_ns; }
  friend bool operator==(const PhaseTimes&, const PhaseTimes&) = default;
};

}  // namespace batchloom::planning
