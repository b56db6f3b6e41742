// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategies.h"

namespace batchloom::simulator {
namespace {

constexpr std::string_view kOurs = "hdp";

model::Topology without_levels(const model::Topology& topology) {
  return model::Topology::create(topology.axes()).value();
}

/// One cluster's steps.
class StepReplay {
 public:
  StepReplay(const Cluster& cluster, const WhatIfOptions& options)
      : cluster_(cluster), options_(options) {}

  Status replay(std::span<const std::uint32_t> lengths, StrategyOutcome& outcome) const {
    BL_ASSIGN_OR_RETURN(const model::StepPlan plan, plan_of(outcome.strategy, lengths));
    BL_ASSIGN_OR_RETURN(const planning::StepTime time,
                        planning::step_time(plan, cluster_.costs, options_.times));
    if (options_.timeline && outcome.steps.empty()) outcome.timeline = rank_spans(plan, time);
    outcome.steps.push_back(planning::report_of(plan, cluster_.costs, time));
    return Status::ok();
  }

 private:
  Result<model::StepPlan> plan_of(std::string_view strategy,
                                  std::span<const std::uint32_t> lengths) const {
    const bool longest = options_.groups == GroupRule::kLongest;
    const bool by_links = options_.rings == RingRule::kByLinks;
    const planning::StrategyInputs inputs = {
        .costs = cluster_.costs,
        .topology = by_links ? cluster_.topology : without_levels(cluster_.topology),
        .capacity_tokens = cluster_.capacity_tokens,
        .min_share_tokens = cluster_.min_share_tokens,
        .context_tokens = longest ? std::ranges::max(lengths) : options_.context_tokens,
        .offload = cluster_.offload};
    BL_ASSIGN_OR_RETURN(model::StepPlan plan,
                        planning::plan_with(strategy, inputs, planning::samples_of(lengths)));
    plan.topology = cluster_.topology;
    return plan;
  }

  const Cluster& cluster_;
  const WhatIfOptions& options_;
};

StrategyOutcome replay_all(const StepReplay& replay, const LengthsByStep& steps,
                           const std::string& strategy) {
  StrategyOutcome outcome{.strategy = strategy};
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const Status done = replay.replay(steps[step], outcome);
    if (done.is_ok()) continue;
    const Status failure = done.with_context(fmt::format("{}, step {}", strategy, step));
    return {.strategy = strategy, .failure = failure};
  }
  return outcome;
}

Status check_names(const std::vector<std::string>& strategies) {
  for (const std::string& name : strategies) {
    BL_RETURN_IF_ERROR(planning::find_strategy(name).status());
  }
  return Status::ok();
}

}  // namespace

std::uint64_t StrategyOutcome::total_ns() const {
  std::uint64_t total = 0;
  for (const planning::PlanReport& step : steps) total += step.step_ns;
  return total;
}

const StrategyOutcome* WhatIf::find(std::string_view strategy) const {
  const auto found = std::ranges::find(strategies, strategy, &StrategyOutcome::strategy);
  return found == strategies.end() ? nullptr : &*found;
}

std::uint64_t WhatIf::total_bound_ns() const {
  std::uint64_t total = 0;
  for (const std::uint64_t bound : bounds_ns) total += bound;
  return total;
}

Result<WhatIf> what_if(const Cluster& cluster, const LengthsByStep& steps,
                       const std::vector<std::string>& strategies, const WhatIfOptions& options) {
  BL_RETURN_IF_ERROR(check_names(strategies));
  const bool empty = std::ranges::any_of(steps, [](const auto& step) { return step.empty(); });
  if (steps.empty() || empty) return Status::invalid("what-if: there is a step without samples");
  const StepReplay replay(cluster, options);
  WhatIf result;
  for (const std::string& strategy : strategies) {
    result.strategies.push_back(replay_all(replay, steps, strategy));
  }
  const StrategyOutcome* const replayed = result.find(kOurs);
  const StrategyOutcome ours =
      replayed != nullptr ? *replayed : replay_all(replay, steps, std::string(kOurs));
  if (ours.failure) return *ours.failure;
  for (const planning::PlanReport& step : ours.steps) {
    result.bounds_ns.push_back(step.lower_bound_ns);
  }
  return result;
}

std::vector<std::string> ladder_of(const model::Topology& topology) {
  const bool stages = topology.extent(model::Axis::kPp) > 1;
  return {"static_cp", "naive_hdp", stages ? "pp_balance" : "dp_balance", std::string(kOurs)};
}

Status check_ladder(const WhatIf& outcome, const model::Topology& topology) {
  const StrategyOutcome* slower = nullptr;
  for (const std::string& name : ladder_of(topology)) {
    const StrategyOutcome* const faster = outcome.find(name);
    if (faster == nullptr) {
      return Status::invalid(
          fmt::format("the order of strategies needs {}, which was not replayed", name));
    }
    if (faster->failure) return *faster->failure;
    if (slower != nullptr && faster->total_ns() >= slower->total_ns()) {
      return Status::invalid(fmt::format(
          "{} takes {} ns for these steps, which is not less than the {} ns of {}: on this cluster "
          "they do not show the published order",
          name, faster->total_ns(), slower->total_ns(), slower->strategy));
    }
    slower = faster;
  }
  return Status::ok();
}

}  // namespace batchloom::simulator
