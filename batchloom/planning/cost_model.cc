// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/cost_model.h"

#include <fmt/format.h>

namespace batchloom::planning {

Status check_figures(const CostModel& model) {
  const auto above = [&](std::string_view figure, std::uint64_t value, std::uint64_t most) {
    return value <= most
               ? Status::ok()
               : Status::invalid(fmt::format("cost model {}: {} is {}, and the most is {}",
                                             model.name, figure, value, most));
  };
  BL_RETURN_IF_ERROR(above("layers", model.layers, kMaxLayers));
  BL_RETURN_IF_ERROR(above("launch_ns", model.launch_ns, kMaxLaunchNs));
  BL_RETURN_IF_ERROR(above("kv_bytes_per_token", model.kv_bytes_per_token, kMaxBytesPerToken));
  BL_RETURN_IF_ERROR(
      above("activation_bytes_per_token", model.activation_bytes_per_token, kMaxBytesPerToken));
  if (model.copy_bytes_per_s == 0 || model.copy_bytes_per_s >= kMinCopyBytesPerS) {
    return Status::ok();
  }
  return Status::invalid(
      fmt::format("cost model {}: copy_bytes_per_s is {}; at least {}, or 0 where it is not known",
                  model.name, model.copy_bytes_per_s, kMinCopyBytesPerS));
}

}  // namespace batchloom::planning
