// SPDX-License-Identifier: Apache-2.0
// Every way that there is to lay the tokens of a step onto ranks, in one table: ours, and those we
// compare with. (Tokens and pictures together: two_module.h, by way of graph_layout.h.)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/place_tree.h"

namespace batchloom::planning {

/// What strategies plan with: costs, ranks and capacity all of them, of the rest each what it needs
/// (StrategyTakes).
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

/// Whose rule a strategy follows.
enum class StrategyKind : std::uint8_t {
  kOurs,
  kBaseline,  ///< Somebody else's, to compare with.
};

/// The inputs that not all strategies look at. Those that one does not take change nothing of its
/// plans, but for the topology that they state.
struct StrategyTakes {
  bool min_share = false;
  bool context = false;
  bool offload = false;
  bool levels = false;  ///< Of the topology: how long rings exchange.
};

/// A row of the table.
struct Strategy {
  std::string_view name;  ///< In files, options, and the plans that it makes.
  StrategyKind kind;
  /// kDp: fixed groups of ranks, those along cp where no context is taken, each with the same
  /// number of micro-batches. kHdp: each sample on ranks of its own, and any number per rank.
  Spread spread;
  StrategyTakes takes;
  /// Pure: samples in any order give the same bytes. `invalid`: inputs with a zero where the
  /// strategy needs a number, a sample without tokens, one given twice, or one that fits nowhere
  /// (ErrorCase::kDoesNotFit); the message names it.
  Result<model::StepPlan> (*plan)(const StrategyInputs& inputs,
                                  std::vector<model::PlanSample> samples);
};

/// The table.
std::span<const Strategy> strategies();

/// The names of its rows, in order.
std::vector<std::string_view> strategy_names();

/// The row of this name. `invalid` where there is none; the message lists those that there are.
Result<const Strategy*> find_strategy(std::string_view name);

/// find_strategy(), and its plan.
Result<model::StepPlan> plan_with(std::string_view strategy, const StrategyInputs& inputs,
                                  std::vector<model::PlanSample> samples);

/// How many ranks may hold one sample where tokens are spread so and no context is taken: those of
/// a group, or all. Precondition: kDp or kHdp.
std::uint32_t ranks_of_a_sample(const model::Topology& topology, Spread spread);

}  // namespace batchloom::planning
