// SPDX-License-Identifier: Apache-2.0
// Every way that there is to lay a step onto ranks, by name: ours, and those we compare with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

/// What the strategies plan with. Each takes of it what it needs.
struct StrategyInputs {
  CostModel costs;
  model::Topology topology;
  std::uint32_t capacity_tokens = 8192;  ///< Of a micro-batch on one rank.
  /// The smallest share of a ring whose exchange hides behind its computing. Smaller: more ranks
  /// for a long sample, less work hidden.
  std::uint32_t min_share_tokens = 4096;
  /// The longest sample that a static mesh is laid out for. 0: as the topology's axes say.
  std::uint32_t context_tokens = 0;
  /// Activations on the host where the device has no room for them.
  bool offload = true;
};

/// The names that plan_with() knows:
///
///   static_cp, naive_hdp, megatron, verl_kk
///                              as others do it (baselines.h)
///   none, lpt, kk, two_level   balance in fixed groups (grouped.h)
///   dp_balance, pp_balance     ByteScale's balance (paper_balance.h)
///   hdp                        each sample on as many ranks as suits it (hdp.h)
std::vector<std::string_view> strategy_names();

/// Pure: samples in any order give the same bytes. `invalid`: an unknown name (the message lists
/// the known), inputs with a zero where the strategy needs a number, a sample without tokens, one
/// given twice, or one that fits nowhere; the message names it.
Result<model::StepPlan> plan_with(std::string_view strategy, const StrategyInputs& inputs,
                                  std::vector<model::PlanSample> samples);

}  // namespace batchloom::planning
