// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_costs.h"

#include <algorithm>

namespace batchloom::planning {

PipelineCosts::PipelineCosts(const CostModel& model, std::uint32_t stages)
    : model_(model), stages_(stages) {}

PhaseTimes PipelineCosts::pack(const HdpCosts& costs, std::uint64_t attention_ns,
                               std::uint64_t attention_forward_ns, std::uint32_t tokens) const {
  const std::uint64_t linear = costs.rest_ns(tokens) - model_.launch_ns;
  const std::uint64_t linear_forward = std::min(linear, model_.linear_forward.time_ns(tokens));
  const std::uint64_t forward = std::min(attention_ns, attention_forward_ns) + linear_forward;
  const std::uint64_t launch = model_.launch_ns / 2;
  return {forward + launch, attention_ns + linear - forward + model_.launch_ns - launch};
}

}  // namespace batchloom::planning
