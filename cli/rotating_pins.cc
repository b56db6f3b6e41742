// SPDX-License-Identifier: Apache-2.0
#include "cli/rotating_pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace batchloom::cli {
namespace {

std::string checkpoint_id(store::Step step) {
  return fmt::format("step-{}", step.value);
}

}  // namespace

Status RotatingPins::pin(store::Step step, const CallOptions& call) {
  BL_RETURN_IF_ERROR(
      store::pin_step(stream_, {.group = group_, .id = checkpoint_id(step), .step = step}, call)
          .status());
  BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(stream_, group_, call));
  std::vector<store::Step> steps;  // A checkpoint that was written twice counts once.
  for (const store::Pin& pin : pins) {
    if (pin.name.id != checkpoint_id(pin.step)) continue;
    if (steps.empty() || steps.back() != pin.step) steps.push_back(pin.step);
  }
  // Oldest first. What is above `step` belongs to a way that the job has given up.
  std::ranges::stable_partition(steps, [&](store::Step other) { return other > step; });
  for (std::size_t i = 0; i + std::max(keep_, std::uint64_t{1}) < steps.size(); ++i) {
    BL_RETURN_IF_ERROR(store::unpin(stream_, group_, checkpoint_id(steps[i]), call).status());
  }
  return Status::ok();
}

}  // namespace batchloom::cli
