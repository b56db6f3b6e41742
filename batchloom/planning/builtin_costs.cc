// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/builtin_costs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "batchloom/planning/measured_costs.h"

namespace batchloom::planning {
namespace {

constexpr std::string_view kH200Name = "h200-llama7b";
constexpr std::string_view kFig6Name = "bytescale-fig6";
constexpr std::array kNames = {kH200Name, kFig6Name};

// Llama-7B, bf16. Keys and values by 8 heads of 128.
constexpr std::uint64_t kHiddenBytes = 2 * 4096;
constexpr std::uint64_t kFfnBytes = 2 * 11008;
constexpr std::uint64_t kKvBytes = 2 * 2 * 8 * 128;
constexpr std::uint64_t kLogSumBytes = 4 * 32;  // One fp32 a head.
// Kept for backward without recomputation, per token: the inputs and outputs of both norms, queries
// and attention's output; keys, values and attention's log-sums; gate, up, and their product.
constexpr std::uint64_t kActivationBytes =
    6 * kHiddenBytes + kKvBytes + kLogSumBytes + 3 * kFfnBytes;

// A rank's own time per micro-batch and layer, besides what the curves contain.
constexpr std::uint64_t kLaunchNs = 150'000;

/// A row of figure 6a, forward. What "attention" has of linear time at short lengths suggests that
/// the projections are part of it.
struct Fig6Row {
  std::uint32_t tokens;
  std::uint32_t attention_us;
  std::uint32_t mlp_us;
};
constexpr Fig6Row kFig6[] = {{4096, 800, 900},     {8192, 1800, 1800},    {16384, 4800, 3600},
                             {32768, 14100, 7500}, {65536, 48200, 15100}, {131072, 175500, 28200}};

// Backward of attention has five matrix products for forward's two (Dao, "FlashAttention-2", arXiv
// 2307.08691, section 4.1), so both together are 7/2 of forward. Backward of a linear layer has two
// (by its input and by its weight) for forward's one, so both together are three times forward.
constexpr std::uint64_t kAttentionBothHalves = 7;
constexpr std::uint64_t kLinearBothHalves = 6;

std::vector<CostPoint> fig6_points(std::uint32_t Fig6Row::* series, std::uint64_t halves) {
  constexpr std::uint64_t kPsPerHalfUs = 500'000;
  std::vector<CostPoint> points;
  for (const Fig6Row& row : kFig6) {
    points.push_back({row.tokens, row.*series * halves * kPsPerHalfUs});
  }
  return points;
}

std::vector<CostPoint> copied(std::span<const CostPoint> points) {
  return {points.begin(), points.end()};
}

/// What both models share.
CostModel llama7b(std::string_view name) {
  CostModel model;
  model.name = name;
  model.version = 1;
  model.launch_ns = kLaunchNs;
  model.layers = 32;
  model.kv_bytes_per_token = kKvBytes;
  model.activation_bytes_per_token = kActivationBytes;
  model.copy_bytes_per_s = kH200Llama7bCosts.copy_bytes_per_s;
  return model;
}

Result<CostModel> with_curves(CostModel model, std::vector<CostPoint> attention,
                              std::vector<CostPoint> attention_forward,
                              std::vector<CostPoint> linear,
                              std::vector<CostPoint> linear_forward) {
  constexpr auto kQuadratic = CostCurve::Growth::kQuadratic;
  constexpr auto kLinear = CostCurve::Growth::kLinear;
  BL_ASSIGN_OR_RETURN(model.attention, CostCurve::create(std::move(attention), kQuadratic));
  BL_ASSIGN_OR_RETURN(model.attention_forward,
                      CostCurve::create(std::move(attention_forward), kQuadratic));
  BL_ASSIGN_OR_RETURN(model.linear, CostCurve::create(std::move(linear), kLinear));
  BL_ASSIGN_OR_RETURN(model.linear_forward, CostCurve::create(std::move(linear_forward), kLinear));
  return model;
}

}  // namespace

std::span<const std::string_view> builtin_cost_model_names() {
  return kNames;
}

Result<CostModel> builtin_cost_model(std::string_view name) {
  if (name == kH200Name) {
    const MeasuredCosts& costs = kH200Llama7bCosts;
    return with_curves(llama7b(name), copied(costs.attention), copied(costs.attention_forward),
                       copied(costs.linear), copied(costs.linear_forward));
  }
  if (name == kFig6Name) {
    return with_curves(llama7b(name), fig6_points(&Fig6Row::attention_us, kAttentionBothHalves),
                       fig6_points(&Fig6Row::attention_us, 2),
                       fig6_points(&Fig6Row::mlp_us, kLinearBothHalves),
                       fig6_points(&Fig6Row::mlp_us, 2));
  }
  return Status::invalid(
      fmt::format("no cost model is called '{}'; there are {}", name, fmt::join(kNames, ", ")));
}

}  // namespace batchloom::planning
