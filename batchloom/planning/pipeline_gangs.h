// SPDX-License-Identifier: Apache-2.0
// Long samples onto pipelines, so that no ring waits for a member.
//
// Ranks that have run the same rings form a group; a sample takes the first ranks of one. So the
// rings of a rank lie on ever narrower intervals around it, and all its neighbours in a ring have
// run the same before. What a group takes is estimated as the sum over its rings and P - 1 times
// the longest: 1F1B keeps at most P micro-batches of a rank in flight, so that a long one among
// short ones passes through all stages nearly alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchloom/planning/hdp_problem.h"

namespace batchloom::planning {

/// A long sample on ranks [first_rank, first_rank + degree). Times are of one layer.
struct PipelineGang {
  std::uint32_t sample = 0;  ///< Of HdpProblem::longs.
  std::uint32_t first_rank = 0;
  std::uint32_t degree = 0;
  std::uint64_t time_ns = 0;
};

/// Every rank runs its gangs in this order. Longest samples first, each on as few ranks as let its
/// group end by `target_ns`, by the estimate. Nullopt where one cannot.
std::optional<std::vector<PipelineGang>> place_pipeline_gangs(const HdpProblem& problem,
                                                              std::uint32_t ranks,
                                                              std::uint32_t stages,
                                                              std::uint64_t target_ns);

}  // namespace batchloom::planning
