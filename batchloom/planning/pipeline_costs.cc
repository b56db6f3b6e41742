// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_costs.h"

#include <algorithm>

namespace batchloom::planning {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

PipelineCosts::PipelineCosts(const CostModel& model, std::uint32_t stages)
    : model_(model), stages_(stages) {}

PhaseTimes PipelineCosts::with_launch(PhaseTimes phases) const {
  const std::uint64_t forward = model_.launch_ns / 2;
  return {phases.forward_ns + forward, phases.backward_ns + model_.launch_ns - forward};
}

PhaseTimes PipelineCosts::pack(const HdpCosts& costs, std::uint64_t attention_ns,
                               std::uint64_t attention_forward_ns, std::uint32_t tokens) const {
  const std::uint64_t linear = costs.rest_ns(tokens) - model_.launch_ns;
  const std::uint64_t linear_forward = std::min(linear, model_.linear_forward.time_ns(tokens));
  const std::uint64_t forward = std::min(attention_ns, attention_forward_ns) + linear_forward;
  return with_launch({forward, attention_ns + linear - forward});
}

PhaseTimes PipelineCosts::gang(const HdpCosts& costs, std::uint64_t attention_ns,
                               std::uint32_t tokens, std::uint32_t degree) const {
  const auto divided = [degree](std::uint64_t time_ns) { return (time_ns + degree - 1) / degree; };
  const std::uint32_t share = (tokens + degree - 1) / degree;
  PhaseTimes phases =
      pack(costs, divided(attention_ns), divided(model_.attention_forward.time_ns(tokens)), share);
  if (share > costs.shape().capacity_tokens && model_.copy_bytes_per_s > 0) {
    const Wide bytes = Wide{share} * model_.activation_bytes_per_token *
                       costs.offload(share).value / model::kOffloadAll.value;
    const auto copy = static_cast<std::uint64_t>(
        (bytes * 1'000'000'000 + model_.copy_bytes_per_s - 1) / model_.copy_bytes_per_s);
    const std::uint64_t launch = model_.launch_ns / 2;
    phases.forward_ns = std::max(phases.forward_ns, copy + launch);
    phases.backward_ns = std::max(phases.backward_ns, copy + model_.launch_ns - launch);
  }
  const std::uint64_t all = costs.gang_ns(attention_ns, tokens, degree);
  const std::uint64_t exchange = all - std::min(all, phases.total_ns());
  phases.forward_ns += exchange / 3;
  phases.backward_ns += exchange - exchange / 3;
  return phases;
}

}  // namespace batchloom::planning
