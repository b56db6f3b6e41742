// SPDX-License-Identifier: Apache-2.0
// What tools/generate_tables.py makes of costs/*.json.
#pragma once

#include <cstdint>
#include <span>

#include "batchloom/planning/cost_curve.h"

namespace batchloom::planning {

/// The measured figures of a CostModel: times of one layer, each series by ascending tokens.
struct MeasuredCosts {
  std::span<const CostPoint> attention;  ///< Forward and backward, as the next but one.
  std::span<const CostPoint> attention_forward;
  std::span<const CostPoint> linear;
  std::span<const CostPoint> linear_forward;
  std::uint64_t copy_bytes_per_s = 0;  ///< The slower direction, of the largest copy measured.
};

/// `costs/h200-costs.json`, whose note says how it was measured: attention by cuDNN.
extern const MeasuredCosts kH200Llama7bCosts;

}  // namespace batchloom::planning
