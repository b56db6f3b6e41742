// SPDX-License-Identifier: Apache-2.0
// What a new stream will hold, before anything of it is made. Steps are planned as a run plans them
// (pipeline_run.h), from what indexes say alone; no record is read and nothing is stored.
//
// It is exact but for one thing: a record that only turns out bad when it is read is struck out by
// the run, and replaced by the next one of its source.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/control/step_loader.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/metadata.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {

struct ForecastInputs {
  const planning::GraphSpec& graph;
  planning::Metadata& metadata;
  const model::Topology& topology;
  BlockWidths widths = {};
};

/// What steps have of one source.
struct SourceForecast {
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  std::optional<model::Step> first_step;  ///< Of its samples; absent: there are none.
  std::optional<model::Step> last_step;
  double passes = 0;  ///< Over all of its records; of the last one what was drawn.
  bool gone = false;  ///< It has given all that it ever will.

  friend bool operator==(const SourceForecast&, const SourceForecast&) = default;
};

/// Samples of more than half of `tokens_max`, and at most that many tokens.
struct LengthBand {
  std::uint64_t tokens_max = 0;  ///< A power of two.
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;

  friend bool operator==(const LengthBand&, const LengthBand&) = default;
};

/// A ratio over steps.
struct RatioOverSteps {
  std::uint64_t steps = 0;  ///< That have one.
  double mean = 1;
  double worst = 1;
};

struct Forecast {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  bool sources_stop = false;            ///< Steps end there: there are no more.
  std::vector<SourceForecast> sources;  ///< By SourceId.
  std::vector<LengthBand> lengths;      ///< Ascending, from the first that has samples to the last.
  std::uint32_t longest_tokens = 0;
  std::uint64_t largest_step_bytes = 0;  ///< While it is loaded.
  RatioOverSteps imbalance_before;       ///< As planning::PlanReport has them.
  RatioOverSteps imbalance_after;
  RatioOverSteps gap;  ///< Makespan over lower bound, where the strategy knows one.
};

/// Of the first `steps` steps, or all there are. Blocks for as long as planning them takes. Errors:
/// those of planning::plan_step(), naming the step; of `call`, which is asked between steps.
Result<Forecast> forecast(const ForecastInputs& inputs, std::uint64_t steps, Runtime& runtime,
                          const CallOptions& call);

}  // namespace batchloom::control
