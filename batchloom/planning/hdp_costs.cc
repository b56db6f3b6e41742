// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_costs.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::planning {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t kLayersKept = 2;  ///< On the device, whatever is copied.
constexpr std::uint64_t kNsPerS = 1'000'000'000;

/// Rounded up. No bandwidth: nothing is known of it, and it takes no time.
std::uint64_t transfer_ns(Wide bytes, std::uint64_t bandwidth_bytes_per_s) {
  if (bandwidth_bytes_per_s == 0) return 0;
  return static_cast<std::uint64_t>((bytes * kNsPerS + bandwidth_bytes_per_s - 1) /
                                    bandwidth_bytes_per_s);
}

Status check_links(const HdpShape& shape) {
  std::uint64_t before = UINT64_MAX;
  for (const RingLink& link : shape.links) {
    if (link.bandwidth_bytes_per_s > 0 && link.bandwidth_bytes_per_s <= before) {
      before = link.bandwidth_bytes_per_s;
      continue;
    }
    return Status::invalid(
        fmt::format("links between {} ranks of {} bytes/s: at least 1, and not above the {} of the "
                    "links inside them",
                    link.ranks, link.bandwidth_bytes_per_s, before));
  }
  return Status::ok();
}

}  // namespace

Result<HdpCosts> HdpCosts::create(const CostModel& model, const HdpShape& shape) {
  if (shape.ranks == 0 || shape.capacity_tokens == 0 || shape.min_share_tokens == 0) {
    return Status::invalid(
        fmt::format("{} ranks of {} tokens with shares of at least {}: each at least 1",
                    shape.ranks, shape.capacity_tokens, shape.min_share_tokens));
  }
  if (shape.ranks > kMaxHdpRanks || shape.capacity_tokens > kMaxCapacityTokens) {
    return Status::invalid(fmt::format("{} ranks of {} tokens; the most are {} of {}", shape.ranks,
                                       shape.capacity_tokens, kMaxHdpRanks, kMaxCapacityTokens));
  }
  BL_RETURN_IF_ERROR(check_figures(model));
  BL_RETURN_IF_ERROR(check_links(shape));
  return HdpCosts(model, shape);
}

HdpCosts::HdpCosts(const CostModel& model, const HdpShape& shape) : model_(model), shape_(shape) {
  attention_ns_ = model.attention.table_ns(shape.capacity_tokens);
  packs_ = model.linear.pack_times(model.launch_ns, shape.capacity_tokens);
  least_per_token_ = packs_->ns[packs_->cheapest_tokens] * 1024 / packs_->cheapest_tokens;
}

PhaseTimes HdpCosts::gang_phases(std::uint64_t attention_ns, std::uint32_t tokens,
                                 std::uint32_t degree, std::size_t level) const {
  const std::uint32_t share = (tokens + degree - 1) / degree;
  const auto divided = [&](std::uint64_t time_ns) { return (time_ns + degree - 1) / degree; };
  const std::uint64_t attention = divided(attention_ns);
  const std::uint64_t linear = model_.linear.time_ns(share);
  std::uint64_t forward_attention =
      std::min(attention, divided(model_.attention_forward.time_ns(tokens)));
  const std::uint64_t forward_linear = std::min(linear, model_.linear_forward.time_ns(share));
  std::uint64_t backward_attention = attention - forward_attention;
  if (!shape_.links.empty()) {
    const std::uint64_t bytes = share * model_.kv_bytes_per_token;
    forward_attention += exposed_ns(forward_attention, bytes, degree, level);
    backward_attention +=
        exposed_ns(backward_attention, bytes * shape_.backward_bytes_factor, degree, level);
  }
  std::uint64_t forward = forward_attention + forward_linear;
  std::uint64_t backward = backward_attention + linear - forward_linear;
  if (share > shape_.capacity_tokens) {
    const std::uint64_t copy = transfer_ns(Wide{share} * model_.activation_bytes_per_token *
                                               offload(share).value / model::kOffloadAll.value,
                                           model_.copy_bytes_per_s);
    forward = std::max(forward, copy);
    backward = std::max(backward, copy);
  }
  const std::uint64_t forward_launch = model_.launch_ns / 2;
  return {forward + forward_launch, backward + model_.launch_ns - forward_launch};
}

std::uint64_t HdpCosts::exposed_ns(std::uint64_t compute_ns, std::uint64_t bytes,
                                   std::uint32_t degree, std::size_t level) const {
  if (bytes == 0) return 0;  // Nothing is sent, and no latency counts.
  const RingLink& link = shape_.links[level];
  const std::uint64_t hop = transfer_ns(bytes, link.bandwidth_bytes_per_s) + link.latency_ns;
  const std::uint64_t step = compute_ns / degree;
  return hop > step ? (degree - 1) * (hop - step) : 0;
}

DegreeRange HdpCosts::degrees(std::uint32_t tokens) const {
  const std::uint32_t least = (tokens + shape_.capacity_tokens - 1) / shape_.capacity_tokens;
  const bool fits = least <= shape_.ranks;
  const bool may_offload = shape_.offload && model_.layers > kLayersKept;
  std::uint32_t fewest = least;
  if (!fits || shape_.offload_any) {
    if (!fits && !may_offload) return {};
    const std::uint64_t room = std::uint64_t{shape_.capacity_tokens} * model_.layers / kLayersKept;
    if (may_offload) fewest = static_cast<std::uint32_t>((tokens + room - 1) / room);
    if (fewest > shape_.ranks) return {};
  }
  if (!fits) {
    if (!shape_.offload_any) fewest = std::max(fewest, (shape_.ranks + 1) / 2);
    return {fewest, shape_.ranks};
  }
  const std::uint32_t most = std::min(shape_.ranks, tokens / shape_.min_share_tokens);
  return {fewest, std::max(least, most)};
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
  const std::uint32_t cheapest = packs_->cheapest_tokens;
  return static_cast<std::uint64_t>(Wide{tokens} * packs_->ns[cheapest] / cheapest);
}

}  // namespace batchloom::planning
