// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/strategy_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <sstream>
#include <utility>

#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/two_module.h"
#include "batchloom/planning/vision_testing.h"

namespace batchloom::planning {
namespace {

using model::Axis;

template <Spread kPictures>
Result<model::StepPlan> two_module_with(const StrategyInputs& inputs,
                                        std::vector<model::PlanSample> samples) {
  BL_ASSIGN_OR_RETURN(
      TwoModulePlan both,
      plan_two_module(picture_costs(), inputs.costs, inputs.topology,
                      {.capacity_tokens = inputs.capacity_tokens, .pictures = kPictures},
                      with_pictures(samples)));
  return std::move(both.plan);
}

model::Topology any_topology() {
  std::vector<model::AxisExtent> axes = {
      {Axis::kPp, *rc::gen::element(1U, 2U, 4U)},
      {Axis::kDp, *rc::gen::inRange<std::uint32_t>(1, 9)},
      {Axis::kCp, *rc::gen::inRange<std::uint32_t>(1, 5)},
      {Axis::kTp, *rc::gen::inRange<std::uint32_t>(1, 3)},
  };
  std::uint32_t world = 1;
  for (const model::AxisExtent& axis : axes) world *= axis.extent;
  std::rotate(axes.begin(), axes.begin() + *rc::gen::inRange(0, 4), axes.end());
  std::vector<model::Level> levels;
  if (const auto island = *rc::gen::inRange<std::uint32_t>(0, 9); island > 0) {
    levels = {{"island", island, 400'000'000'000, 1000},
              {"cluster", island * world, 50'000'000'000, 5000}};
  }
  return model::Topology::create(std::move(axes), std::move(levels)).value();
}

/// The ranks of the smallest equal groups that hold the context; all where none do.
std::uint32_t ranks_for_context(const StrategyInputs& inputs) {
  const std::uint32_t ranks = inputs.topology.hdp_size();
  std::uint32_t group = 1;
  while (group < ranks &&
         (ranks % group != 0 || group * inputs.capacity_tokens < inputs.context_tokens)) {
    ++group;
  }
  return group;
}

/// Up to all that there is room for.
LengthLimits any_limits(const Strategy& strategy, const StrategyInputs& inputs) {
  const std::uint32_t room = room_of(strategy, inputs);
  const bool any_rank = strategy.spread == Spread::kHdp;
  return {.ranks = any_rank ? inputs.topology.hdp_size() : inputs.topology.extent(Axis::kDp),
          .capacity_tokens = inputs.capacity_tokens,
          .most_tokens =
              *rc::gen::oneOf(rc::gen::just(room), rc::gen::inRange<std::uint32_t>(1, room + 1))};
}

std::string shown(const StrategyInputs& inputs, const Lengths& lengths) {
  const auto& levels = inputs.topology.levels();
  return fmt::format(
      "{}, islands of {}, capacity {}, shares of {}, context {}, offload {}; lengths {}",
      model::to_string(inputs.topology), levels.empty() ? 0 : levels[0].ranks_per_group,
      inputs.capacity_tokens, inputs.min_share_tokens, inputs.context_tokens, inputs.offload,
      fmt::join(lengths, " "));
}

}  // namespace

std::vector<Strategy> tested_strategies() {
  std::vector<Strategy> all(strategies().begin(), strategies().end());
  const auto ours = StrategyKind::kOurs;
  all.push_back({"two_module", ours, Spread::kDp, {}, two_module_with<Spread::kWorld>});
  all.push_back({"two_module_dp", ours, Spread::kDp, {}, two_module_with<Spread::kDp>});
  return all;
}

StrategyInputs any_inputs() {
  static const CostModel costs = text_costs();
  StrategyInputs inputs;
  inputs.costs = costs;
  // Odd ones too: halves of an odd number of layers are no whole tokens.
  inputs.costs.layers = *rc::gen::oneOf(rc::gen::just(costs.layers), rc::gen::inRange(1U, 8U));
  inputs.costs.copy_bytes_per_s = *rc::gen::elementOf(
      std::vector<std::uint64_t>{costs.copy_bytes_per_s, 0, 10'000'000'000'000});
  inputs.topology = any_topology();
  inputs.capacity_tokens =
      *rc::gen::oneOf(rc::gen::just(8192U), rc::gen::inRange<std::uint32_t>(1, 3000));
  inputs.min_share_tokens = *rc::gen::element(4096U, 500U, 1U);
  inputs.offload = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    const std::uint32_t most = inputs.topology.hdp_size() * inputs.capacity_tokens;
    inputs.context_tokens = *rc::gen::inRange<std::uint32_t>(1, most + 1);
  }
  return inputs;
}

std::uint32_t room_of(const Strategy& strategy, const StrategyInputs& inputs) {
  const model::Topology& topology = inputs.topology;
  std::uint32_t ranks =
      strategy.spread == Spread::kHdp ? topology.hdp_size() : topology.extent(Axis::kCp);
  std::uint32_t tokens_of_a_rank = inputs.capacity_tokens;
  if (strategy.takes.context && inputs.context_tokens > 0) ranks = ranks_for_context(inputs);
  if (strategy.name == "megatron") ranks = std::bit_floor(ranks);
  // Of a long sample, two layers stay on the device.
  if (strategy.name == "hdp" && inputs.offload && inputs.costs.layers > 2) {
    tokens_of_a_rank = tokens_of_a_rank * inputs.costs.layers / 2;
  }
  return ranks * tokens_of_a_rank;
}

void holds_for_all_lengths(const Strategy& strategy, const StrategyProperty& property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::max(params.maxSuccess / 4, 1);
  for (const LengthGenerator& generator : length_generators()) {
    const auto of_any_step = [&] {
      const StrategyInputs inputs = any_inputs();
      const Lengths lengths = *generator.lengths(any_limits(strategy, inputs));
      RC_LOG() << shown(inputs, lengths) << std::endl;
      property(inputs, lengths);
    };
    const auto name = fmt::format("{}, {}", strategy.name, generator.name);
    const rc::detail::TestResult result =
        rc::detail::checkTestable(of_any_step, rc::detail::TestMetadata{name, name}, params);
    rc::detail::SuccessResult success;
    if (result.match(success)) continue;
    std::ostringstream message;
    rc::detail::printResultMessage(result, message);
    ADD_FAILURE() << name << ": " << message.str();
  }
}

model::StepPlan planned(const Strategy& strategy, const StrategyInputs& inputs,
                        std::vector<model::PlanSample> samples) {
  Result<model::StepPlan> plan = strategy.plan(inputs, std::move(samples));
  RC_ASSERT(plan.status().to_string() == "ok");
  return *std::move(plan);
}

model::StepPlan planned(const Strategy& strategy, const StrategyInputs& inputs,
                        const Lengths& lengths) {
  return planned(strategy, inputs, samples_of(lengths));
}

void PrintTo(const Strategy& strategy, std::ostream* out) {
  *out << strategy.name;
}

std::string name_of_strategy(const testing::TestParamInfo<Strategy>& info) {
  return std::string(info.param.name);
}

}  // namespace batchloom::planning
