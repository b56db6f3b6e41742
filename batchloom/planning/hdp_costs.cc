// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_costs.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::planning {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t kLayersKept = 2;  ///< On the device, whatever is copied.

}  // namespace

Result<HdpCosts> HdpCosts::create(const CostModel& model, const HdpShape& shape) {
  if (shape.ranks == 0 || shape.capacity_tokens == 0 || shape.min_share_tokens == 0) {
    return Status::invalid(
        fmt::format("{} ranks of {} tokens with shares of at least {}: each at least 1",
                    shape.ranks, shape.capacity_tokens, shape.min_share_tokens));
  }
  return HdpCosts(model, shape);
}

HdpCosts::HdpCosts(const CostModel& model, const HdpShape& shape) : model_(model), shape_(shape) {
  attention_ns_.reserve(shape.capacity_tokens + std::size_t{1});
  rest_ns_.reserve(shape.capacity_tokens + std::size_t{1});
  for (std::uint32_t tokens = 0; tokens <= shape.capacity_tokens; ++tokens) {
    attention_ns_.push_back(model.attention.time_ns(tokens));
    rest_ns_.push_back(model.linear.time_ns(tokens) + model.launch_ns);
  }
  for (std::uint32_t tokens = 2; tokens <= shape.capacity_tokens; ++tokens) {
    if (Wide{rest_ns_[tokens]} * best_pack_tokens_ < Wide{rest_ns_[best_pack_tokens_]} * tokens) {
      best_pack_tokens_ = tokens;
    }
  }
  least_per_token_ = rest_ns_[best_pack_tokens_] * 1024 / best_pack_tokens_;
}

DegreeRange HdpCosts::degrees(std::uint32_t tokens) const {
  const std::uint32_t least = (tokens + shape_.capacity_tokens - 1) / shape_.capacity_tokens;
  if (least <= shape_.ranks) {
    const std::uint32_t most = std::min(shape_.ranks, tokens / shape_.min_share_tokens);
    return {least, std::max(least, most)};
  }
  if (!shape_.offload || model_.layers < kLayersKept + 1) return {};
  const std::uint64_t room = std::uint64_t{shape_.capacity_tokens} * model_.layers / kLayersKept;
  const auto fitting = static_cast<std::uint32_t>((tokens + room - 1) / room);
  if (fitting > shape_.ranks) return {};
  return {std::max(fitting, (shape_.ranks + 1) / 2), shape_.ranks};
}

model::OffloadRatio HdpCosts::offload(std::uint32_t share) const {
  if (share <= shape_.capacity_tokens) return {};
  const std::uint64_t all = model::kOffloadAll.value;
  const auto room = static_cast<std::uint64_t>(Wide{model_.layers} * shape_.capacity_tokens * all /
                                               share);  // Layers x all.
  const std::uint64_t kept = (room - kLayersKept * all) / (model_.layers - kLayersKept);
  return model::OffloadRatio(static_cast<std::uint32_t>(all - kept));
}

std::uint64_t HdpCosts::least_rest_ns(std::uint64_t tokens) const {
  return static_cast<std::uint64_t>(Wide{tokens} * rest_ns_[best_pack_tokens_] / best_pack_tokens_);
}

}  // namespace batchloom::planning
