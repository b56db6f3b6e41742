// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_assign.h"

#include <optional>
#include <utility>

#include "batchloom/planning/load_repair.h"

namespace batchloom::planning {
namespace {

// Shares of the lower bound, in 1/1,000.
constexpr std::uint64_t kExact = 1000;
constexpr std::uint64_t kClose = 1016;        ///< Better ones are not worth another try.
constexpr std::uint64_t kCloseOfMany = 1018;  ///< The same with many ranks, where a try is long.
constexpr std::uint64_t kVeryClose = 1006;    ///< Exchanges stop here; with many ranks, above.
constexpr std::uint64_t kCoarseFirst = 1015;  ///< The first target where packs are coarse.
constexpr std::uint64_t kFineStep = 4;        ///< From one target to the next.
constexpr std::uint64_t kLittleIdle = 5;
constexpr std::uint64_t kScatterShare = 1002;  ///< What a makespan counts where gangs scatter.
constexpr std::uint64_t kFineMost = 1100;      ///< Above, steps are a tenth.

constexpr std::uint32_t kShelvesMost = 8;
constexpr std::uint32_t kManyRanks = 4096;
constexpr int kTriesMost = 4;
constexpr std::uint32_t kSmallPackTokens = 512;

std::uint64_t share_of(std::uint64_t bound_ns, std::uint64_t mill) {
  return bound_ns / 1000 * mill + bound_ns % 1000 * mill / 1000;
}

/// A rank whose gang ends just below the bound has no room for the smallest pack, and idles: where
/// that pack is a noticeable part of the step, gangs had better end a little above.
bool packs_are_coarse(const HdpCosts& costs, const HdpProblem& problem) {
  return problem.longest_bound_ns <= share_of(problem.work_bound_ns, 1020) &&
         costs.rest_ns(kSmallPackTokens) * 100 > problem.lower_bound_ns();
}

/// The time that ranks wait for others before their last gang.
std::uint64_t idle_ns(const GangPlacement& placement) {
  std::uint64_t idle = 0;
  for (const std::uint64_t end_ns : placement.end_ns) idle += end_ns;
  for (const PlacedGang& gang : placement.gangs) idle -= gang.degree() * gang.time_ns;
  return idle;
}

/// With as few shelves as leave ranks hardly waiting, or else those with the least waiting.
std::optional<GangPlacement> place_below(const HdpCosts& costs, const RankLevels& levels,
                                         const HdpProblem& problem, PlacementRule rule) {
  const std::uint64_t little_ns =
      share_of(problem.lower_bound_ns() * costs.shape().ranks, kLittleIdle);
  std::optional<GangPlacement> best;
  for (rule.shelves = 0; rule.shelves <= kShelvesMost; ++rule.shelves) {
    auto placed = place_gangs(costs, levels, problem, rule);
    if (!placed || (best && idle_ns(*placed) >= idle_ns(*best))) continue;
    best = std::move(placed);
    if (idle_ns(*best) <= little_ns) break;
  }
  return best;
}

HdpAssignment fill_up(const HdpCosts& costs, const HdpProblem& problem, GangPlacement gangs) {
  RankLoads loads(costs, problem.shorts, gangs.end_ns);
  loads.spread();
  const std::uint64_t bound_ns = problem.lower_bound_ns();
  const bool many = costs.shape().ranks > kManyRanks;
  repair_loads(loads, bound_ns,
               {.enough_ns = share_of(bound_ns, many ? kCloseOfMany : kVeryClose),
                .rounds = 5,
                .steps = 1500 + costs.shape().ranks / 6});
  const std::uint64_t makespan_ns = loads.makespan_ns();
  return {std::move(gangs), std::move(loads), makespan_ns};
}

}  // namespace

HdpAssignment assign_hdp(const HdpCosts& costs, const RankLevels& levels,
                         const HdpProblem& problem) {
  const std::uint64_t bound_ns = problem.lower_bound_ns();
  const bool has_islands = levels.count() > 1;
  const bool many = costs.shape().ranks > kManyRanks;
  int tries = many ? 1 : kTriesMost;
  std::optional<HdpAssignment> best;
  std::uint64_t best_score = UINT64_MAX;  // The makespan, and a little more where gangs scatter.
  std::uint64_t mill = packs_are_coarse(costs, problem) ? kCoarseFirst : kExact;
  bool islands_first = has_islands;
  while (tries > 0) {
    const std::uint64_t target_ns = share_of(bound_ns, mill);
    if (best && target_ns >= best->makespan_ns) break;
    const bool scatters = !islands_first;
    auto gangs = place_below(costs, levels, problem,
                             {.target_ns = target_ns, .islands_first = islands_first});
    islands_first = scatters && has_islands;  // Each target first with, and then without.
    if (scatters) mill += mill < kFineMost ? kFineStep : mill / 10;
    if (!gangs) continue;  // Some target is high enough for all of them, one after the other.
    if (scatters) --tries;
    HdpAssignment assignment = fill_up(costs, problem, *std::move(gangs));
    const std::uint64_t score =
        share_of(assignment.makespan_ns, scatters && has_islands ? kScatterShare : 1000);
    if (score < best_score) {
      best.emplace(std::move(assignment));
      best_score = score;
    }
    if (best->makespan_ns <= share_of(bound_ns, many ? kCloseOfMany : kClose)) break;
  }
  return *std::move(best);
}

}  // namespace batchloom::planning
