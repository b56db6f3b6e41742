// SPDX-License-Identifier: Apache-2.0
// The steps that the planner is measured on.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "batchloom/model/topology.h"
#include "bench/measure.h"

namespace batchloom {

inline constexpr std::uint64_t kMi = std::uint64_t{1} << 20;
inline constexpr std::uint32_t kContexts[] = {256 << 10, 1 << 20, 2 << 20};
inline constexpr std::string_view kDistributions[] = {"byted-like", "github-like"};

struct PlannerCase {
  std::string_view name;
  std::uint32_t ranks = 0;
  std::uint64_t total_tokens = 0;
};
/// Neighbours of one name share a figure.
inline constexpr PlannerCase kPlannerCases[] = {{"r64", 64, 4 * kMi},
                                                {"r64", 64, 16 * kMi},
                                                {"r512_32m", 512, 32 * kMi},
                                                {"r2048_32m", 2048, 32 * kMi},
                                                {"r16384_256m", 16'384, 256 * kMi}};

/// Eight ranks on an island, 50 GB/s between islands, 400 GB/s inside them.
inline std::vector<model::Level> levels_of(std::uint32_t ranks) {
  return {{"island", 8, 400'000'000'000, 0}, {"cluster", ranks, 50'000'000'000, 0}};
}

inline model::Topology topology_of(std::uint32_t ranks, std::vector<model::Level> levels) {
  return must(
      model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}, std::move(levels)));
}

}  // namespace batchloom
