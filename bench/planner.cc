// SPDX-License-Identifier: Apache-2.0
// How long does planning a step take, and how far from its lower bound is the plan?
//
// For each case (ranks and tokens in all), distribution, context and seed: a step's lengths are
// drawn, planned several times on one core, from lengths to digest, and the plan is checked. The
// time of a seed is the median of its runs; the gap is makespan over lower bound, of computing
// alone. A figure is the worst over all rows and seeds of its case.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "batchloom/base/real_runtime.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/simulator/length_distributions.h"
#include "bench/measure.h"

namespace batchloom {
namespace {

constexpr std::uint64_t kMi = std::uint64_t{1} << 20;
constexpr std::uint32_t kContexts[] = {256 << 10, 1 << 20, 2 << 20};
constexpr std::string_view kDistributions[] = {"byted-like", "github-like"};

struct Case {
  std::string_view name;
  std::uint32_t ranks = 0;
  std::uint64_t total_tokens = 0;
};
/// Neighbours of one name share a figure.
constexpr Case kCases[] = {{"r64", 64, 4 * kMi},
                           {"r64", 64, 16 * kMi},
                           {"r512_32m", 512, 32 * kMi},
                           {"r2048_32m", 2048, 32 * kMi},
                           {"r16384_256m", 16'384, 256 * kMi}};

struct Effort {
  std::uint64_t seeds = 20;
  int runs = 20;
};

/// What one step's planning took, or the worst of several.
struct Measured {
  double plan_ms = 0;
  double proof_ms = 0;
  double gap = 1;

  void take_worst(const Measured& other) {
    plan_ms = std::max(plan_ms, other.plan_ms);
    proof_ms = std::max(proof_ms, other.proof_ms);
    gap = std::max(gap, other.gap);
  }
};

class PlannerBench {
 public:
  explicit PlannerBench(const Effort& effort) : effort_(effort) {}

  Measured measure_case(const Case& of, std::vector<std::string>& rows) const {
    const planning::HdpPlanner planner = must(planning::HdpPlanner::create(
        must(planning::builtin_cost_model("h200-llama7b")),
        must(model::Topology::create({{.axis = model::Axis::kDp, .extent = of.ranks}})), {}));
    Measured worst;
    for (const std::string_view distribution : kDistributions) {
      for (const std::uint32_t context : kContexts) {
        worst.take_worst(measure_row(of, planner, distribution, context, rows));
      }
    }
    return worst;
  }

 private:
  Measured measure_row(const Case& of, const planning::HdpPlanner& planner,
                       std::string_view distribution, std::uint32_t context,
                       std::vector<std::string>& rows) const {
    Measured worst;
    std::vector<double> plan_ms, gaps;
    for (std::uint64_t seed = 1; seed <= effort_.seeds; ++seed) {
      const Measured one = measure_step(
          planner,
          planning::samples_of(must(simulator::draw_lengths({.distribution = distribution,
                                                             .context_tokens = context,
                                                             .total_tokens = of.total_tokens,
                                                             .seed = seed}))));
      worst.take_worst(one);
      plan_ms.push_back(one.plan_ms);
      gaps.push_back(one.gap);
    }
    rows.push_back(fmt::format(
        R"({{"case": "{}", "tokens": {}, "lengths": "{}", "context": {}, "gap_median": {:.4f}, )"
        R"("gap_worst": {:.4f}, "plan_ms_median": {:.2f}, "plan_ms_worst": {:.2f}, )"
        R"("proof_ms_worst": {:.2f}}})",
        of.name, of.total_tokens, distribution, context, median(gaps), worst.gap, median(plan_ms),
        worst.plan_ms, worst.proof_ms));
    return worst;
  }

  Measured measure_step(const planning::HdpPlanner& planner,
                        const std::vector<model::PlanSample>& samples) const {
    std::vector<double> plan_ms, proof_ms;
    Measured measured;
    for (int run = 0; run < effort_.runs; ++run) {
      std::vector<model::PlanSample> given = samples;
      const Time begin = runtime_->now();
      const model::StepPlan plan = must(planner.plan(std::move(given)));
      const Time planned = runtime_->now();
      must(model::check_plan(plan, {.capacity = model::Capacity{.tokens = 8192, .layers = 32}}));
      plan_ms.push_back(milliseconds(planned - begin));
      proof_ms.push_back(milliseconds(runtime_->now() - planned));
      measured.gap =
          static_cast<double>(plan.makespan_ns) / static_cast<double>(plan.lower_bound_ns);
    }
    measured.plan_ms = median(plan_ms);
    measured.proof_ms = median(proof_ms);
    return measured;
  }

  static double milliseconds(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  }

  const Effort effort_;
  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
};

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int run(const Effort& effort) {
  const PlannerBench bench(effort);
  std::vector<std::string> rows, figures;
  std::map<std::string_view, Measured> by_name;
  for (const Case& of : kCases) {
    fmt::print(stderr, "{} ranks, {} Mi tokens\n", of.ranks, of.total_tokens / kMi);
    by_name[of.name].take_worst(bench.measure_case(of, rows));
  }
  for (const auto& [name, worst] : by_name) {
    figures.push_back(fmt::format(R"("{}_gap": {:.4f})", name, worst.gap));
    figures.push_back(fmt::format(R"("{}_plan_ms": {:.2f})", name, worst.plan_ms));
    figures.push_back(fmt::format(R"("{}_proof_ms": {:.2f})", name, worst.proof_ms));
  }
  figures.push_back(fmt::format(R"("peak_mib": {:.0f})", peak_mib()));
  fmt::print(R"({{"figures": {{{}}}, "rows": [{}]}})"
             "\n",
             fmt::join(figures, ", "), fmt::join(rows, ", "));
  return 0;
}

}  // namespace
}  // namespace batchloom

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  return batchloom::run(quick ? batchloom::Effort{.seeds = 1, .runs = 3} : batchloom::Effort{});
}
