// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_levels.h"

#include <algorithm>
#include <utility>

namespace batchloom::planning {

RankLevels::RankLevels(const model::Topology& topology) {
  const std::uint32_t ranks = topology.hdp_size();
  for (const model::Level& from : topology.levels()) {
    Level level;
    level.bandwidth = from.bandwidth_bytes_per_s;
    level.latency_ns = from.latency_ns;
    if (!levels_.empty()) {  // A way between groups goes through the links inside them as well.
      level.bandwidth = std::min(level.bandwidth, levels_.back().bandwidth);
      level.latency_ns = std::max(level.latency_ns, levels_.back().latency_ns);
    }
    std::uint32_t group = 0;
    std::uint32_t begin = 0;
    std::uint32_t first_world_group = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const model::Rank world = topology.rank(topology.coordinates(model::HdpRank(rank)));
      const std::uint32_t world_group = world.value / from.ranks_per_group;
      if (rank > 0 && world_group != first_world_group) {
        ++group;
        begin = rank;
      }
      first_world_group = world_group;
      level.group_of.push_back(group);
      level.widest = std::max(level.widest, rank + 1 - begin);
    }
    if (level.widest > 1 || &from == &topology.levels().back()) levels_.push_back(std::move(level));
  }
  if (levels_.empty()) levels_.emplace_back();
  levels_.back().group_of.assign(ranks, 0);
  levels_.back().widest = ranks;
}

std::size_t RankLevels::joining(std::uint32_t a, std::uint32_t b) const {
  std::size_t level = 0;
  while (group_of(level, a) != group_of(level, b)) ++level;
  return level;
}

std::size_t RankLevels::innermost_of(std::uint32_t ranks) const {
  std::size_t level = 0;
  while (level + 1 < levels_.size() && levels_[level].widest < ranks) ++level;
  return level;
}

}  // namespace batchloom::planning
