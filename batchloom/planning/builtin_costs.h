// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "batchloom/base/status.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

/// The cost models that come with Batchloom, by name:
///
///   h200-llama7b    Measured on one NVIDIA H200: `costs/h200-costs.json`. Above the last point
///                   attention goes on with the square of the tokens, the rest linearly.
///   bytescale-fig6  The times of figure 6a in "ByteScale" (arXiv 2502.21231), on hardware that the
///                   paper does not name. It gives forward times only; builtin_costs.cc says how
///                   backward follows, and that launches and copies are those of h200-llama7b.
///
/// Both: a layer of Llama-7B's shape, keys and values by 8 heads of 128 in bf16 (grouped queries),
/// 32 layers. Neither knows pictures: `encoder` takes no time.
std::span<const std::string_view> builtin_cost_model_names();

/// `invalid`: no model of this name; the message lists those there are.
Result<CostModel> builtin_cost_model(std::string_view name);

}  // namespace batchloom::planning
