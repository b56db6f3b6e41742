// SPDX-License-Identifier: Apache-2.0
// How long would steps take, laid onto the ranks of a cluster by one strategy or another?
//
// Every strategy plans the same samples, and the same rules say when its plan ends
// (planning/step_time.h): nothing is measured. docs/design/0007-what-if.md says what is assumed,
// and how much each assumption moves the result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/planning/plan_report.h"
#include "batchloom/planning/step_time.h"
#include "batchloom/simulator/cluster.h"
#include "batchloom/simulator/rank_spans.h"
#include "batchloom/simulator/step_lengths.h"

namespace batchloom::simulator {

/// What static meshes are laid out for.
enum class GroupRule : std::uint8_t {
  kContext,  ///< The longest sample that there may be: the mesh never changes.
  kLongest,  ///< The longest sample of each step: kinder than any system that runs.
};

/// Which ranks a plan joins to rings.
enum class RingRule : std::uint8_t {
  kByLinks,   ///< Those that links join best, where a strategy looks at links at all.
  kAnyRanks,  ///< As if no link cost anything; the steps then run over those that there are.
};

struct WhatIfOptions {
  std::uint32_t context_tokens = 0;
  planning::StepTimeOptions times = {};
  GroupRule groups = GroupRule::kContext;
  RingRule rings = RingRule::kByLinks;
  bool timeline = false;  ///< Keep the spans of the first step.
};

/// The steps of one strategy.
struct StrategyOutcome {
  std::string strategy;
  /// Why it could not plan a step; then all else is empty.
  std::optional<Status> failure = {};
  std::vector<planning::PlanReport> steps = {};
  std::vector<RankSpan> timeline = {};  ///< Of the first step, rank by rank, by time.

  std::uint64_t total_ns() const;
};

struct WhatIf {
  std::vector<StrategyOutcome> strategies;  ///< In the order in which they were named.
  /// By step: hdp's lower bound (hdp_problem.h), with the exchange of rings where there are links.
  /// It holds for plans that keep a sample of at most capacity_tokens whole and cut a longer one
  /// into shares of at least min_share_tokens. Who cuts finer may end earlier, as static_cp does
  /// with short samples and fast links.
  std::vector<std::uint64_t> bounds_ns;

  /// Null where it was not replayed.
  const StrategyOutcome* find(std::string_view strategy) const;
  std::uint64_t total_bound_ns() const;
};

/// Pure. A strategy that cannot plan is part of the result. `invalid`: an unknown strategy; no
/// tokens; a step that hdp cannot plan, so that there is no bound to compare with.
Result<WhatIf> what_if(const Cluster& cluster, const LengthsByStep& steps,
                       const std::vector<std::string>& strategies, const WhatIfOptions& options);

/// The strategies from static context parallelism to ours, each of which must be faster than those
/// before: static_cp, naive_hdp, dp_balance (pp_balance where there are pipeline stages), hdp.
std::vector<std::string> ladder_of(const model::Topology& topology);

/// Whether all of ladder_of() were replayed and take less and less time over all steps. `invalid`
/// naming the two that do not: these steps, on this cluster, do not show the published order.
Status check_ladder(const WhatIf& outcome, const model::Topology& topology);

/// The same question with one assumption changed.
struct Variant {
  std::string assumption;  ///< "bandwidth of cluster", ...
  std::string value;       ///< "25 GB/s", ...
  Cluster cluster;
  WhatIfOptions options;
  /// Not empty where the variant alone has pipeline stages, or alone has none: the strategy that
  /// then stands for dp_balance or pp_balance.
  std::string balance = {};

  /// Who replays it for each of `given`, in that order.
  std::vector<std::string> strategies(std::vector<std::string> given) const;
};

/// First as it is; then each assumption by itself, halved and doubled where it is a number.
std::vector<Variant> variants_of(const Cluster& cluster, const WhatIfOptions& options);

}  // namespace batchloom::simulator
