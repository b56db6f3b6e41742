// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"

namespace batchloom::model {

/// The stored form of `plan` (docs/formats/plan.md): a FlatBuffer, the same bytes for equal plans.
/// Preconditions: the digest is plan_digest(plan); the encoded plan stays below 1 GiB.
Bytes encode_plan(const StepPlan& plan);

/// The plan in `bytes`, which may be hostile and lie at any address. What is returned passes
/// check_plan_structure() and carries its own digest; check_plan() is the caller's to call.
/// `corruption`: damaged, cut short, of an unknown version, or not a plan; the message says which.
Result<StepPlan> decode_plan(ByteSpan bytes);

}  // namespace batchloom::model
