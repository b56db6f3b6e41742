// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_samples.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::planning {

std::vector<model::PlanSample> samples_of(std::span<const std::uint32_t> tokens) {
  std::vector<model::PlanSample> samples(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    samples[i].id.index = model::RecordIndex(i);
    samples[i].tokens = tokens[i];
    samples[i].valid_labels = tokens[i] > 0 ? tokens[i] - 1 : 0;
  }
  return samples;
}

Status sort_by_id(std::vector<model::PlanSample>& samples) {
  if (!std::ranges::is_sorted(samples, {}, &model::PlanSample::id)) {
    std::ranges::sort(samples, {}, &model::PlanSample::id);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].tokens == 0) {
      return Status::invalid(fmt::format("sample {} has no tokens", to_string(samples[i].id)));
    }
    if (i > 0 && samples[i - 1].id == samples[i].id) {
      return Status::invalid(fmt::format("sample {} is given twice", to_string(samples[i].id)));
    }
  }
  return Status::ok();
}

}  // namespace batchloom::planning
