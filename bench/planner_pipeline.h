// SPDX-License-Identifier: Apache-2.0
// Plans whose HDP ranks are pipelines of four equal stages, against the published rule: 512 ranks,
// 32 Mi tokens.
//
//   pp4_gap              makespan over lower bound (batchloom/planning/pipeline_bound.h)
//   pp4_ours_over_paper  our makespan over PP-Balance's (batchloom/planning/paper_balance.h), both
//                        by the same walk of all 1F1B events (step_time.h), without links
//
// Each the worst over distributions, contexts and seeds. PP-Balance runs without activations on the
// host: with them it takes fewer ranks for long samples, and longer.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp.h"
#include "batchloom/planning/paper_balance.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/step_time.h"
#include "batchloom/simulator/length_distributions.h"
#include "bench/measure.h"

namespace batchloom {

class PipelineBench {
 public:
  explicit PipelineBench(Runtime& runtime) : runtime_(runtime) {}

  /// Adds a row for each distribution and context, and the figures.
  void measure(std::uint64_t seeds, std::vector<std::string>& rows,
               std::map<std::string, double>& figures) {
    for (const std::string_view distribution : {"byted-like", "github-like"}) {
      for (const std::uint32_t context : {256U << 10, 1U << 20, 2U << 20}) {
        measure_row(distribution, context, seeds, rows);
      }
    }
    figures["pp4_gap"] = worst_gap_;
    figures["pp4_ours_over_paper"] = worst_ratio_;
    figures["pp4_plan_ms"] = worst_ms_;
  }

 private:
  void measure_row(std::string_view distribution, std::uint32_t context, std::uint64_t seeds,
                   std::vector<std::string>& rows) {
    std::vector<double> gaps, paper_gaps, ratios, plan_ms;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const auto samples = planning::samples_of(
          must(simulator::draw_lengths({.distribution = distribution,
                                        .context_tokens = context,
                                        .total_tokens = std::uint64_t{32} << 20,
                                        .seed = seed})));
      const Time begin = runtime_.now();
      const model::StepPlan ours = must(planner_.plan(samples));
      plan_ms.push_back(std::chrono::duration<double, std::milli>(runtime_.now() - begin).count());
      const model::StepPlan paper = must(planning::plan_pp_balance(model_, topology_, {}, samples));
      const double ours_ns = checked_ns(ours);
      const double paper_ns = checked_ns(paper);
      const auto bound_ns = static_cast<double>(ours.lower_bound_ns);
      gaps.push_back(ours_ns / bound_ns);
      paper_gaps.push_back(paper_ns / bound_ns);
      ratios.push_back(ours_ns / paper_ns);
    }
    rows.push_back(fmt::format(
        R"({{"case": "pp4_r512_32m", "lengths": "{}", "context": {}, "gap_median": {:.4f}, )"
        R"("gap_worst": {:.4f}, "paper_gap_median": {:.4f}, "ours_over_paper_median": {:.4f}, )"
        R"("ours_over_paper_worst": {:.4f}, "plan_ms_median": {:.2f}, "plan_ms_worst": {:.2f}}})",
        distribution, context, median(gaps), std::ranges::max(gaps), median(paper_gaps),
        median(ratios), std::ranges::max(ratios), median(plan_ms), std::ranges::max(plan_ms)));
    worst_gap_ = std::max(worst_gap_, std::ranges::max(gaps));
    worst_ratio_ = std::max(worst_ratio_, std::ranges::max(ratios));
    worst_ms_ = std::max(worst_ms_, std::ranges::max(plan_ms));
  }

  /// The step's time, of a plan that may be executed.
  double checked_ns(const model::StepPlan& plan) const {
    must(model::check_plan(plan, {.capacity = model::Capacity{.tokens = 8192, .layers = 32}}));
    return static_cast<double>(must(planning::step_time(plan, model_, {.links = false})).step_ns);
  }

  Runtime& runtime_;
  const planning::CostModel model_ = must(planning::builtin_cost_model("h200-llama7b"));
  const model::Topology topology_ = must(model::Topology::create(
      {{.axis = model::Axis::kPp, .extent = 4}, {.axis = model::Axis::kDp, .extent = 512}}));
  const planning::HdpPlanner planner_ = must(planning::HdpPlanner::create(model_, topology_, {}));
  double worst_gap_ = 0;
  double worst_ratio_ = 0;
  double worst_ms_ = 0;
};

}  // namespace batchloom
