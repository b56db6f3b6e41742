// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_samples.h"

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

}  // namespace batchloom::planning
