// SPDX-License-Identifier: Apache-2.0
// Steps for any strategy, for property tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "batchloom/planning/length_testing.h"
#include "batchloom/planning/strategies.h"

namespace batchloom::planning {

/// The table, and two_module as rows of it: its pictures follow from the ids of the samples, and go
/// to all ranks (two_module) or to the groups (two_module_dp).
std::vector<Strategy> tested_strategies();

/// Draws, within a property, what strategies plan with: one, two or four pipeline stages; up to 8
/// ranks along dp, 4 along cp and 2 along tp, in any order of axes; islands of any size with links
/// inside and between them, or no links; a capacity as usual or a small one.
StrategyInputs any_inputs();

/// The tokens of the longest sample that the strategy has room for. Of baselines with offload: that
/// they have room for whatever the costs.
std::uint32_t room_of(const Strategy& strategy, const StrategyInputs& inputs);

using StrategyProperty = std::function<void(const StrategyInputs& inputs, const Lengths& lengths)>;
/// Checks a property of a strategy by RapidCheck, with lengths of each generator in turn: a quarter
/// as many cases of each as properties have. What fails is shown with its inputs, shrunk.
void holds_for_all_lengths(const Strategy& strategy, const StrategyProperty& property);

/// The strategy's plan; the property fails where there is none.
model::StepPlan planned(const Strategy& strategy, const StrategyInputs& inputs,
                        std::vector<model::PlanSample> samples);
model::StepPlan planned(const Strategy& strategy, const StrategyInputs& inputs,
                        const Lengths& lengths);

/// Tests of strategies show them, and are called, by their names.
void PrintTo(const Strategy& strategy, std::ostream* out);
std::string name_of_strategy(const testing::TestParamInfo<Strategy>& info);

}  // namespace batchloom::planning
