// SPDX-License-Identifier: Apache-2.0
// Long samples onto pipelines, so that no ring waits for a member and few pipelines run long ones.
//
// 1F1B keeps at most P micro-batches of a rank in flight, so that a long one among short ones
// passes through the P stages nearly alone: what a rank takes is about the sum over its tasks and
// P - 1 times the longest. If all ranks end together, that is the mean work and P - 1 times the
// mean of the ranks' longest: so long samples belong together, on few ranks, each on as many as it
// can use.
//
//  1. Ranks that have run the same rings form a group; a sample takes the first ranks of one. So
//     the rings of a rank lie on ever narrower intervals around it, and all its neighbours in a
//     ring have run the same before.
//  2. Samples by descending length. Each goes to the fullest group that has room for it below the
//     target, on as few ranks as keep it from being the group's longest; where no group has, to
//     ranks without a ring, on as many as it can use.
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

  friend bool operator==(const PipelineGang&, const PipelineGang&) = default;
};

/// Every rank runs its gangs in this order. Nullopt where a sample has no room below `target_ns`.
std::optional<std::vector<PipelineGang>> place_pipeline_gangs(const HdpProblem& problem,
                                                              std::uint32_t ranks,
                                                              std::uint32_t stages,
                                                              std::uint64_t target_ns);

}  // namespace batchloom::planning
