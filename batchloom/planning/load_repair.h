// SPDX-License-Identifier: Apache-2.0
// Brings the last ranks to end earlier, by exchanging short samples between ranks.
//
//  1. Smoothing: ranks by their end; the last with the first, the second last with the second, and
//     so on, each pair once. A few rounds.
//  2. Repair: a target that falls while it is reached. A rank that ends after it trades a sample
//     for one that is slightly shorter; or else exchanges with one of those that end first; or else
//     gives a sample to a rank that trades in its turn. Trades come first: they are found soonest.
//
// Both take a fixed number of steps, so that the result never depends on a clock.
#pragma once

#include "batchloom/planning/rank_loads.h"

namespace batchloom::planning {

struct RepairEffort {
  std::uint64_t enough_ns = 0;  ///< No better end is asked for.
  std::uint32_t rounds = 5;
  std::uint32_t steps = 1500;
};

/// Stops early at `enough_ns`, or at `bound_ns`, below which no plan can end.
void repair_loads(RankLoads& loads, std::uint64_t bound_ns, const RepairEffort& effort);

}  // namespace batchloom::planning
