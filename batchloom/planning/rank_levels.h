// SPDX-License-Identifier: Apache-2.0
// The groups of a topology's levels as HDP ranks see them. HDP ranks keep the order of the ranks
// they stand for, so that a group is a stretch of neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/model/topology.h"

namespace batchloom::planning {

/// The links that a ring over HDP ranks may have to use, innermost first. Immutable; thread-safe.
///
/// Levels whose groups hold one HDP rank each are left out: no ring runs inside of them. The last
/// level joins all ranks: where the topology's outermost groups are smaller, its links are taken to
/// reach between them. A topology without levels is one group, without links.
class RankLevels {
 public:
  explicit RankLevels(const model::Topology& topology);

  /// At least 1.
  std::size_t count() const { return levels_.size(); }
  /// Ranks of the level's largest group.
  std::uint32_t widest(std::size_t level) const { return levels_[level].widest; }
  /// Which of the level's groups the rank lies in. Precondition: below the number of HDP ranks.
  std::uint32_t group_of(std::size_t level, std::uint32_t rank) const {
    return levels_[level].group_of[rank];
  }
  /// The innermost level with both ranks in one group: so too with all ranks between them.
  std::size_t joining(std::uint32_t a, std::uint32_t b) const;
  /// The innermost level with groups as large.
  std::size_t innermost_of(std::uint32_t ranks) const;
  /// Per rank and direction; 0 where the topology has no levels.
  std::uint64_t bandwidth_bytes_per_s(std::size_t level) const { return levels_[level].bandwidth; }
  std::uint64_t latency_ns(std::size_t level) const { return levels_[level].latency_ns; }

 private:
  struct Level {
    std::vector<std::uint32_t> group_of;  // By HDP rank.
    std::uint32_t widest = 0;
    std::uint64_t bandwidth = 0;
    std::uint64_t latency_ns = 0;
  };

  std::vector<Level> levels_;
};

}  // namespace batchloom::planning
