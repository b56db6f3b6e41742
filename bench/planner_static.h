// SPDX-License-Identifier: Apache-2.0
// How much longer a step takes on a static mesh than planned by us. Part of the planner's bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchloom {

/// Steps of 32 Mi tokens of "github-like" lengths with a context of 2 Mi, on 512 HDP ranks of 8,192
/// tokens, of the model h200-llama7b: 4,096 bytes of keys and values for each token and layer.
/// Links: 400 GB/s inside of 8 ranks, 50 GB/s beyond; no latency. Backward, rings send twice as
/// much as forward. All by step_time.h: simulated.
///
/// The ratio hinges on links against computing, so these belong beside it wherever it is told.
struct StaticOverOurs {
  double of_sums = 0;  ///< All steps on the static mesh over all steps planned by us.
  double least = 0;    ///< Of one step.
  double most = 0;
  std::vector<std::string> rows;  ///< A JSON object for each seed.
};

/// Seeds 1 to `seeds`; at least one.
StaticOverOurs measure_static_over_ours(std::uint64_t seeds);

}  // namespace batchloom
