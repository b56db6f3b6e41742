// SPDX-License-Identifier: Apache-2.0
// What planning believes that work costs: times of one transformer layer on one HDP rank, forward
// and backward together, and bytes. All integers, so that every host plans the same.
#pragma once

#include <cstdint>
#include <string>

#include "batchloom/planning/cost_curve.h"

namespace batchloom::planning {

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
  std::uint64_t copy_bytes_per_s = 0;            ///< To and from the host, per rank.

  friend bool operator==(const CostModel&, const CostModel&) = default;
};

}  // namespace batchloom::planning
