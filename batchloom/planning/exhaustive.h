// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "batchloom/planning/hdp_costs.h"

namespace batchloom::planning {

/// The shortest makespan, of one layer, that any assignment of the samples can have: what planners
/// are measured against. By trying all of them, which takes no longer than seconds for six samples
/// on four ranks. `invalid` where a sample fits on no number of ranks. `known_ns`: a makespan that
/// can be reached, if one is known; the search is shorter for it.
Result<std::uint64_t> best_makespan_ns(const HdpCosts& costs, std::span<const std::uint32_t> tokens,
                                       std::uint64_t known_ns = UINT64_MAX);

}  // namespace batchloom::planning
