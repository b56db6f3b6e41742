// SPDX-License-Identifier: Apache-2.0
#include "bench/planner_static.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/model/plan_check.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/step_time.h"
#include "batchloom/planning/strategies.h"
#include "batchloom/simulator/length_distributions.h"
#include "bench/measure.h"

namespace batchloom {
namespace {

constexpr std::uint32_t kStaticRanks = 512;
constexpr std::uint32_t kStaticContext = 2 << 20;
constexpr std::uint64_t kStaticTokens = 32 << 20;

planning::StrategyInputs static_inputs() {
  planning::StrategyInputs inputs;
  inputs.costs = must(planning::builtin_cost_model("h200-llama7b"));
  inputs.topology = must(model::Topology::create(
      {{.axis = model::Axis::kDp, .extent = kStaticRanks}},
      {{"island", 8, 400'000'000'000, 0}, {"cluster", kStaticRanks, 50'000'000'000, 0}}));
  inputs.context_tokens = kStaticContext;
  return inputs;
}

/// A step by one strategy, over the links and as if there were none.
struct TimedStep {
  planning::StepTime time;
  planning::StepTime computing;
};

TimedStep time_of(std::string_view strategy, const planning::StrategyInputs& inputs,
                  const std::vector<model::PlanSample>& samples) {
  const model::StepPlan plan = must(planning::plan_with(strategy, inputs, samples));
  must(model::check_plan(plan, {.capacity = model::Capacity{.tokens = inputs.capacity_tokens,
                                                            .layers = inputs.costs.layers}}));
  return {must(planning::step_time(plan, inputs.costs, {.backward_bytes_factor = 2})),
          must(planning::step_time(plan, inputs.costs, {.links = false}))};
}

double seconds(std::uint64_t time_ns) {
  return static_cast<double>(time_ns) / 1e9;
}

/// Waiting for rings, the mean over ranks.
double mean_ring_s(const planning::StepTime& time) {
  double sum = 0;
  for (const planning::RankTime& rank : time.ranks) sum += seconds(rank.busy.ring_ns);
  return sum / static_cast<double>(time.ranks.size());
}

}  // namespace

StaticOverOurs measure_static_over_ours(std::uint64_t seeds) {
  const planning::StrategyInputs inputs = static_inputs();
  StaticOverOurs result;
  double static_sum = 0;
  double ours_sum = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto samples =
        planning::samples_of(must(simulator::draw_lengths({.distribution = "github-like",
                                                           .context_tokens = kStaticContext,
                                                           .total_tokens = kStaticTokens,
                                                           .seed = seed})));
    const TimedStep mesh_step = time_of("static_cp", inputs, samples);
    const TimedStep our_step = time_of("hdp", inputs, samples);
    const planning::StepTime& on_mesh = mesh_step.time;
    const planning::StepTime& ours = our_step.time;
    const double ratio = seconds(on_mesh.step_ns) / seconds(ours.step_ns);
    const double computing =
        seconds(mesh_step.computing.step_ns) / seconds(our_step.computing.step_ns);
    static_sum += seconds(on_mesh.step_ns);
    ours_sum += seconds(ours.step_ns);
    result.least = seed == 1 ? ratio : std::min(result.least, ratio);
    result.most = std::max(result.most, ratio);
    const auto gigabytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; };
    result.rows.push_back(fmt::format(
        R"({{"case": "static_over_ours", "seed": {}, "static_s": {:.2f}, "ours_s": {:.2f}, )"
        R"("ratio": {:.2f}, "ratio_of_computing": {:.3f}, )"
        R"("static_ring_s": {:.2f}, "ours_ring_s": {:.2f}, )"
        R"("static_far_gb": {:.0f}, "ours_far_gb": {:.0f}}})",
        seed, seconds(on_mesh.step_ns), seconds(ours.step_ns), ratio, computing,
        mean_ring_s(on_mesh), mean_ring_s(ours), gigabytes(on_mesh.bytes_by_level[1]),
        gigabytes(ours.bytes_by_level[1])));
  }
  result.of_sums = static_sum / ours_sum;
  return result;
}

}  // namespace batchloom
