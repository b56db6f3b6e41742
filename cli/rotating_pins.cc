// SPDX-License-Identifier: Apache-2.0
#include "cli/rotating_pins.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace batchloom::cli {

Status RotatingPins::pin(store::Step step, const CallOptions& call) {
  constexpr std::string_view kPrefix = "step-";
  BL_RETURN_IF_ERROR(
      store::pin_step(
          stream_, {.group = group_, .id = fmt::format("{}{}", kPrefix, step.value), .step = step},
          call)
          .status());
  BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(stream_, group_, call));
  std::vector<std::string> ids;  // Oldest first; a checkpoint that was written twice counts once.
  for (const store::Pin& pin : pins) {
    if (!pin.name.id.starts_with(kPrefix)) continue;
    if (ids.empty() || ids.back() != pin.name.id) ids.push_back(pin.name.id);
  }
  for (std::size_t i = 0; i + keep_ < ids.size(); ++i) {
    BL_RETURN_IF_ERROR(store::unpin(stream_, group_, ids[i], call).status());
  }
  return Status::ok();
}

}  // namespace batchloom::cli
