// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_assign.h"

#include "batchloom/base/check.h"
#include "batchloom/planning/load_repair.h"

namespace batchloom::planning {
namespace {

constexpr std::uint32_t kShelvesMost = 8;

std::optional<GangPlacement> place_below(const HdpCosts& costs, const HdpProblem& problem,
                                         std::uint64_t target) {
  for (std::uint32_t shelves = 0; shelves <= kShelvesMost; ++shelves) {
    if (auto placed = place_gangs(costs, problem, target, shelves)) return placed;
    if (problem.longs.empty()) break;
  }
  return std::nullopt;
}

}  // namespace

HdpAssignment assign_hdp(const HdpCosts& costs, const HdpProblem& problem) {
  const std::uint64_t bound = problem.lower_bound_ns();
  std::optional<HdpAssignment> best;
  int tries = 0;
  const int most = costs.shape().ranks > 4096 ? 1 : 4;
  const bool coarse = problem.longest_bound_ns * 50 <= problem.work_bound_ns * 51 && costs.rest_ns(512) * 100 > bound;
  const char* e = getenv("MILL");
  for (std::uint64_t mill = coarse ? (e ? atoi(e) : 1015) : 1000; tries < most && mill < 8000; mill += (mill < 1100 ? 4 : mill / 10)) {
    const std::uint64_t target = bound / 1000 * mill + bound % 1000;
    if (best && target >= best->makespan_ns) break;
    auto placed = place_below(costs, problem, target);
    if (!placed) continue;
    ++tries;
    RankLoads loads(costs, problem.shorts, placed->end_ns);
    loads.spread();
    repair_loads(loads, bound, {.rounds = 5, .steps = 1500 + costs.shape().ranks / 6});
    const std::uint64_t makespan = loads.makespan_ns();
    if (!best || makespan < best->makespan_ns) {
      best.emplace(HdpAssignment{*std::move(placed), std::move(loads), makespan});
    }
    if (best->makespan_ns <= bound + bound / 1000 * 16) break;
  }
  BL_CHECK(best.has_value(), "gangs fit below some target");
  return *std::move(best);
}

}  // namespace batchloom::planning
