// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "batchloom/model/step_plan.h"

namespace batchloom::model {

/// XXH3-64 over a little-endian walk of every field of `plan` but the digest itself, as laid down
/// in docs/formats/plan.md. Equal plans have equal digests on every host; it does not depend on how
/// a plan is stored or where it lies in memory. Pure.
std::uint64_t plan_digest(const StepPlan& plan);

}  // namespace batchloom::model
