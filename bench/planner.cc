// SPDX-License-Identifier: Apache-2.0
// How long does planning a step take, how far from its lower bound is the plan, and what do its
// rings send between islands?
//
// For each case (ranks and tokens in all), distribution, context and seed: a step's lengths are
// drawn, planned several times on one core, from lengths to digest, and the plan is checked. The
// time of a seed is the median of its runs; the gap is makespan over lower bound, of computing
// alone. Beside it, the gap of the plan that counts the exchange of rings, in makespan and bound;
// and what a planner that knows of no islands would have sent. A figure is the worst over all rows
// and seeds of its case.
//
// What a case needs in memory is the peak of a process of its own (planner_memory.h).
//
// Then many steps of a handful of samples, against the best assignment there is. Bars are what this
// planner is held to: whether each is reached goes to stderr, and how many are not is a figure.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "batchloom/base/freed_memory.h"
#include "batchloom/base/random.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/model/rank_events.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/exhaustive.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/ring_traffic.h"
#include "batchloom/simulator/length_distributions.h"
#include "bench/bars.h"
#include "bench/measure.h"
#include "bench/planner_cases.h"
#include "bench/planner_memory.h"
#include "bench/planner_pipeline.h"
#include "bench/planner_static.h"

namespace batchloom {
namespace {

struct Effort {
  std::uint64_t seeds = 20;
  int runs = 20;
  int small_steps = 10'000;
};

/// What one step's planning took, or the worst of several.
struct Measured {
  double plan_ms = 0;
  double proof_ms = 0;
  double gap = 1;
  double flat_gap = 1;         ///< Had the planner not known of islands.
  double ring_gap = 1;         ///< With the exchange of rings in makespan and bound.
  double between_islands = 0;  ///< GB.
  double scattered = 0;        ///< The same, had the planner not known of islands.
  double over_least = 1;       ///< Bytes between islands over the least for these degrees.
  double apart = 0;            ///< Share of gangs that one island could hold and several do.

  void take_worst(const Measured& other) {
    plan_ms = std::max(plan_ms, other.plan_ms);
    proof_ms = std::max(proof_ms, other.proof_ms);
    gap = std::max(gap, other.gap);
    flat_gap = std::max(flat_gap, other.flat_gap);
    ring_gap = std::max(ring_gap, other.ring_gap);
    between_islands = std::max(between_islands, other.between_islands);
    scattered = std::max(scattered, other.scattered);
    over_least = std::max(over_least, other.over_least);
    apart = std::max(apart, other.apart);
  }
};

double gap_of(const model::StepPlan& plan) {
  return static_cast<double>(plan.makespan_ns) / static_cast<double>(plan.lower_bound_ns);
}

/// The planners of one case.
struct Planners {
  explicit Planners(std::uint32_t ranks)
      : levels(topology_of(ranks, levels_of(ranks))),
        islands(
            must(planning::HdpPlanner::create(model, topology_of(ranks, levels_of(ranks)), {}))),
        flat(must(planning::HdpPlanner::create(model, topology_of(ranks, {}), {}))),
        ring(must(planning::HdpPlanner::create(model, topology_of(ranks, levels_of(ranks)),
                                               {.ring = true}))) {}

  planning::CostModel model = must(planning::builtin_cost_model("h200-llama7b"));
  planning::RankLevels levels;
  planning::HdpPlanner islands;
  planning::HdpPlanner flat;
  planning::HdpPlanner ring;
};

class PlannerBench {
 public:
  explicit PlannerBench(const Effort& effort) : effort_(effort) {}

  Measured measure_case(const PlannerCase& of, std::vector<std::string>& rows) const {
    const Planners planners(of.ranks);
    Measured worst;
    for (const std::string_view distribution : kDistributions) {
      for (const std::uint32_t context : kContexts) {
        worst.take_worst(measure_row(of, planners, distribution, context, rows));
      }
    }
    return worst;
  }

 private:
  Measured measure_row(const PlannerCase& of, const Planners& planners,
                       std::string_view distribution, std::uint32_t context,
                       std::vector<std::string>& rows) const {
    Measured worst;
    std::vector<double> plan_ms, gaps, ring_gaps, bytes, bytes_before;
    for (std::uint64_t seed = 1; seed <= effort_.seeds; ++seed) {
      const Measured one = measure_step(
          planners,
          planning::samples_of(must(simulator::draw_lengths({.distribution = distribution,
                                                             .context_tokens = context,
                                                             .total_tokens = of.total_tokens,
                                                             .seed = seed}))));
      worst.take_worst(one);
      plan_ms.push_back(one.plan_ms);
      gaps.push_back(one.gap);
      ring_gaps.push_back(one.ring_gap);
      bytes.push_back(one.between_islands);
      bytes_before.push_back(one.scattered);
    }
    rows.push_back(fmt::format(
        R"({{"case": "{}", "tokens": {}, "lengths": "{}", "context": {}, "gap_median": {:.4f}, )"
        R"("gap_worst": {:.4f}, "flat_gap_worst": {:.4f}, )"
        R"("ring_gap_median": {:.4f}, "ring_gap_worst": {:.4f}, )"
        R"("plan_ms_median": {:.2f}, "plan_ms_worst": {:.2f}, "proof_ms_worst": {:.2f}, )"
        R"("island_gb_flat": {:.0f}, "island_gb": {:.0f}, "over_least_worst": {:.3f}, )"
        R"("apart_worst": {:.4f}}})",
        of.name, of.total_tokens, distribution, context, median(gaps), worst.gap, worst.flat_gap,
        median(ring_gaps), worst.ring_gap, median(plan_ms), worst.plan_ms, worst.proof_ms,
        median(bytes_before), median(bytes), worst.over_least, worst.apart));
    return worst;
  }

  Measured measure_step(const Planners& planners,
                        const std::vector<model::PlanSample>& samples) const {
    std::vector<double> plan_ms, proof_ms;
    Measured measured;
    model::StepPlan plan;
    for (int run = 0; run < effort_.runs; ++run) {
      std::vector<model::PlanSample> given = samples;
      const Time begin = runtime_->now();
      plan = must(planners.islands.plan(std::move(given)));
      const Time planned = runtime_->now();
      must(model::check_plan(plan, {.capacity = model::Capacity{.tokens = 8192, .layers = 32}}));
      must(model::check_rank_events(plan, model::rank_events_of(plan)));
      plan_ms.push_back(milliseconds(planned - begin));
      proof_ms.push_back(milliseconds(runtime_->now() - planned));
    }
    measured.gap = gap_of(plan);
    measured.plan_ms = median(plan_ms);
    measured.proof_ms = median(proof_ms);
    measured.ring_gap = gap_of(must(planners.ring.plan(samples)));
    const auto sent = planning::ring_traffic(plan, planners.levels, planners.model);
    const model::StepPlan flat_plan = must(planners.flat.plan(samples));
    measured.flat_gap = gap_of(flat_plan);
    const auto flat = planning::ring_traffic(flat_plan, planners.levels, planners.model);
    const auto gigabytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; };
    measured.between_islands = gigabytes(sent.between_islands());
    measured.scattered = gigabytes(flat.between_islands());
    measured.over_least =
        static_cast<double>(sent.between_islands()) /
        static_cast<double>(std::max<std::uint64_t>(sent.least_between_islands, 1));
    measured.apart = static_cast<double>(sent.gangs_apart) / std::max(sent.gangs, 1U);
    return measured;
  }

  static double milliseconds(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  }

  const Effort effort_;
  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
};

/// Our makespan over the best there is, for steps of a handful of samples on a handful of ranks.
struct AgainstBest {
  double mean = 1;
  double worst = 1;
  int below_best = 0;    ///< Steps that ours ends before the best there is: one of both is wrong.
  int bounds_above = 0;  ///< Steps whose lower bound exceeds the best there is: must be 0.
};

AgainstBest measure_against_best(int steps) {
  const planning::CostModel model = must(planning::builtin_cost_model("h200-llama7b"));
  AgainstBest result{.mean = 0};
  Random random(1);
  for (int i = 0; i < steps; ++i) {
    const auto ranks = static_cast<std::uint32_t>(1 + random.below(4));
    std::vector<std::uint32_t> tokens(1 + random.below(6));
    for (std::uint32_t& length : tokens) {
      const std::uint32_t most = random.below(3) == 0 ? 8192 * ranks : 9000;
      length = static_cast<std::uint32_t>(1 + random.below(std::min(most, 8192 * ranks)));
    }
    const auto costs = must(planning::HdpCosts::create(model, {.ranks = ranks}));
    const auto planner = must(planning::HdpPlanner::create(
        model, topology_of(ranks, {}), {.offload = false}));  // As the best is searched.
    const model::StepPlan plan = must(planner.plan(planning::samples_of(tokens)));
    const std::uint64_t best = must(planning::best_makespan_ns(costs, tokens)) * model.layers;
    const double ratio = static_cast<double>(plan.makespan_ns) / static_cast<double>(best);
    result.mean += ratio / steps;
    result.worst = std::max(result.worst, ratio);
    if (plan.makespan_ns < best) ++result.below_best;
    if (plan.lower_bound_ns > best) ++result.bounds_above;
  }
  return result;
}

/// Times are of an idle core.
constexpr Bar kBars[] = {
    {"r64_gap", 1, 1.01},
    {"r512_32m_gap", 1, 1.01},
    {"r2048_32m_gap", 1, 1.02},
    {"r16384_256m_gap", 1, 1.02},
    {"r512_32m_plan_ms", 0, 5},
    {"r16384_256m_plan_ms", 0, 40},
    {"r16384_256m_proof_ms", 0, 10},
    {"pp4_ours_over_paper", 0, 1},
    {"static_over_ours_github_2m", 8, kAny},
    {"brute_mean", 1, 1.02},
    {"brute_worst", 1, 1.10},
    {"brute_below_best", 0, 0},
    {"brute_bounds_above", 0, 0},
};

/// A process for each case, since a peak never falls.
void measure_all_memory(std::map<std::string, double>& figures) {
  for (const PlannerCase& of : kPlannerCases) {
    fmt::print(stderr, "memory of {} ranks, {} Mi tokens\n", of.ranks, of.total_tokens / kMi);
    const PlannerMemory memory = measure_memory(of);
    double& peak_mib = figures[fmt::format("{}_peak_mib", of.name)];
    peak_mib = std::max(peak_mib, memory.peak_mib);
    double& before_mib = figures["before_planning_mib"];
    before_mib = std::max(before_mib, memory.before_mib);
  }
}

int run(const Effort& effort) {
  std::map<std::string, double> figures;
  measure_all_memory(figures);  // First: it forks.
  const PlannerBench bench(effort);
  std::vector<std::string> rows;
  std::map<std::string_view, Measured> by_name;
  for (const PlannerCase& of : kPlannerCases) {
    fmt::print(stderr, "{} ranks, {} Mi tokens\n", of.ranks, of.total_tokens / kMi);
    by_name[of.name].take_worst(bench.measure_case(of, rows));
  }
  for (const auto& [name, worst] : by_name) {
    figures[fmt::format("{}_gap", name)] = worst.gap;
    figures[fmt::format("{}_ring_gap", name)] = worst.ring_gap;
    figures[fmt::format("{}_plan_ms", name)] = worst.plan_ms;
    figures[fmt::format("{}_proof_ms", name)] = worst.proof_ms;
    figures[fmt::format("{}_apart", name)] = worst.apart;
  }
  const StaticOverOurs ratio = measure_static_over_ours(effort.seeds);
  rows.insert(rows.end(), ratio.rows.begin(), ratio.rows.end());
  figures["static_over_ours_github_2m"] = ratio.of_sums;
  figures["static_over_ours_github_2m_min"] = ratio.least;
  figures["static_over_ours_github_2m_max"] = ratio.most;
  fmt::print(stderr, "{} small steps against the best there is\n", effort.small_steps);
  const AgainstBest brute = measure_against_best(effort.small_steps);
  figures["brute_mean"] = brute.mean;
  figures["brute_worst"] = brute.worst;
  figures["brute_below_best"] = brute.below_best;
  figures["brute_bounds_above"] = brute.bounds_above;
  fmt::print(stderr, "pipelines of 4 stages\n");
  const auto runtime = make_real_runtime();
  PipelineBench(*runtime).measure(effort.seeds, rows, figures);
  figures["bars_missed"] = report_bars(kBars, figures);
  std::vector<std::string> shown;
  for (const auto& [name, value] : figures) {
    shown.push_back(fmt::format(R"("{}": {:.5g})", name, value));
  }
  fmt::print(R"({{"figures": {{{}}}, "rows": [{}]}})"
             "\n",
             fmt::join(shown, ", "), fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  batchloom::keep_freed_memory();  // As the command does.
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  return batchloom::run(quick ? batchloom::Effort{.seeds = 1, .runs = 3, .small_steps = 1000}
                              : batchloom::Effort{});
}
