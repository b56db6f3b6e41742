// SPDX-License-Identifier: Apache-2.0
#include "bench/planner_memory.h"

#include <sys/resource.h>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/simulator/length_distributions.h"

namespace batchloom {
namespace {

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void plan_all(const PlannerCase& of) {
  const auto planner =
      must(planning::HdpPlanner::create(must(planning::builtin_cost_model("h200-llama7b")),
                                        topology_of(of.ranks, levels_of(of.ranks)), {}));
  for (const std::string_view distribution : kDistributions) {
    for (const std::uint32_t context : kContexts) {
      const auto lengths = must(simulator::draw_lengths({.distribution = distribution,
                                                         .context_tokens = context,
                                                         .total_tokens = of.total_tokens,
                                                         .seed = 1}));
      must(planner.plan(planning::samples_of(lengths)));
    }
  }
}

}  // namespace

PlannerMemory measure_memory(const PlannerCase& of) {
  Child child([&] {
    const double before_mib = peak_mib();
    plan_all(of);
    return std::vector<double>{before_mib, peak_mib()};
  });
  const std::vector<double> numbers = child.join();
  BL_CHECK(numbers.size() == 2, "a child did not say its memory");
  return {.before_mib = numbers[0], .peak_mib = numbers[1]};
}

}  // namespace batchloom
