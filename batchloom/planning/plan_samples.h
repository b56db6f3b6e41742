// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"

namespace batchloom::planning {

/// Samples where only lengths are known, as in studies: records 0, 1, 2, ... of source 0, each
/// whole, all labels of which count but the last token's, which has none.
std::vector<model::PlanSample> samples_of(std::span<const std::uint32_t> tokens);

/// What a plan knows of samples: all but their pictures and where they lie.
std::vector<model::PlanSample> plan_samples_of(std::span<const model::SampleMeta> samples);

/// By id, whatever order they came in, so that the plan does not depend on it. `invalid`: a sample
/// without tokens, or one given twice.
Status sort_by_id(std::vector<model::PlanSample>& samples);
Status sort_by_id(std::vector<model::SampleMeta>& samples);

}  // namespace batchloom::planning
