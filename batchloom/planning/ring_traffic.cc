// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/ring_traffic.h"

#include <numeric>

namespace batchloom::planning {
namespace {

/// By task. Its tokens: of all members.
std::vector<std::uint64_t> tokens_by_task(const model::StepPlan& plan) {
  std::vector<std::uint64_t> tokens(plan.tasks.size(), 0);
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    for (const model::Piece& piece : plan.pieces_of(micro_batch)) {
      tokens[micro_batch.task.value] += piece.tokens();
    }
  }
  return tokens;
}

}  // namespace

std::uint64_t RingTraffic::between_islands() const {
  return std::accumulate(bytes_by_level.begin() + 1, bytes_by_level.end(), std::uint64_t{0});
}

RingTraffic ring_traffic(const model::StepPlan& plan, const RankLevels& levels,
                         const CostModel& model, std::uint32_t backward_bytes_factor) {
  RingTraffic traffic;
  traffic.bytes_by_level.resize(levels.count(), 0);
  const std::vector<std::uint64_t> tokens = tokens_by_task(plan);
  for (std::size_t task = 0; task < plan.tasks.size(); ++task) {
    const auto members = plan.members_of(plan.tasks[task]);
    const std::uint64_t degree = members.size();
    if (degree < 2) continue;
    const std::uint64_t edge_bytes = tokens[task] * (degree - 1) / degree *
                                     model.kv_bytes_per_token * model.layers *
                                     (1 + std::uint64_t{backward_bytes_factor});
    std::uint64_t crossings = 0;
    for (std::size_t i = 0; i < degree; ++i) {
      const std::size_t level = levels.joining(members[i].value, members[(i + 1) % degree].value);
      traffic.bytes_by_level[level] += edge_bytes;
      if (level > 0) ++crossings;
    }
    const std::uint64_t widest = levels.widest(0);
    ++traffic.gangs;
    if (degree > widest) {
      traffic.least_between_islands += (degree + widest - 1) / widest * edge_bytes;
    } else if (crossings > 0) {
      ++traffic.gangs_apart;
    }
  }
  return traffic;
}

}  // namespace batchloom::planning
