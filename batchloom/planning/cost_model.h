// SPDX-License-Identifier: Apache-2.0
// What planning believes that work costs: times of one transformer layer on one HDP rank, forward
// and backward together, and bytes. All integers, so that every host plans the same.
#pragma once

#include <cstdint>
#include <string>

#include "batchloom/base/status.h"
#include "batchloom/planning/cost_curve.h"

namespace batchloom::planning {

/// No model or rank that there will be is larger; with these, no sum of times or bytes of a step
/// leaves 64 bits, and no table of a planner grows beyond some hundred MiB.
inline constexpr std::uint32_t kMaxLayers = 1U << 16;
inline constexpr std::uint64_t kMaxLaunchNs = 1'000'000'000;
inline constexpr std::uint64_t kMaxBytesPerToken = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kMinCopyBytesPerS = 1'000'000;
inline constexpr std::uint32_t kMaxCapacityTokens = 1U << 24;
inline constexpr std::uint32_t kMaxHdpRanks = 1U << 20;

/// A named, versioned table. A value.
struct CostModel {
  std::string name;
  std::uint32_t version = 0;

  CostCurve attention;  ///< Causal, of one whole sequence, forward and backward.
  CostCurve attention_forward;
  CostCurve linear;  ///< All that a layer does by token, forward and backward.
  CostCurve linear_forward;
  CostCurve encoder;            ///< Of one picture by its patches, forward and backward.
  std::uint64_t launch_ns = 0;  ///< Of one micro-batch on one rank, per layer.
  std::uint32_t layers = 1;     ///< Of the model; times above are of one.

  std::uint64_t kv_bytes_per_token = 0;          ///< Of keys and values, per layer.
  std::uint64_t activation_bytes_per_token = 0;  ///< That backward needs, per layer.
  /// To and from the host, per rank. 0: not known; then copies take no time.
  std::uint64_t copy_bytes_per_s = 0;

  friend bool operator==(const CostModel&, const CostModel&) = default;
};

/// Ok, or `invalid`, naming the first figure that is outside of what is said above.
Status check_figures(const CostModel& model);

}  // namespace batchloom::planning
