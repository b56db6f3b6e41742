// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "batchloom/store/pins.h"

namespace batchloom::client {

/// What names have in common that differ in their digits alone: "step-8" and "step-16" are one
/// series, "best" is another.
std::string pin_series(std::string_view name);

/// Pins a step for a checkpoint, then removes the older pins of its group and series, but for the
/// newest `keep` (at least 1), an earlier process's too. The pin just made stays. Those above it
/// count as older than all others: the job has gone back, and will come by there again. What was
/// pinned twice, by one name at one step, counts once. Errors: those of pin_step(); after others it
/// stands, and older ones may.
Status pin_checkpoint(const store::Stream& stream, const store::PinRequest& request,
                      std::uint64_t keep, const CallOptions& call);

}  // namespace batchloom::client
