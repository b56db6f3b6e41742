// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/runs_check.h"

#include <fmt/format.h>

#include "batchloom/store/planned_run.h"

namespace batchloom::store {

RunsCheck::RunsCheck(const BatchIndex& index) : index_(index) {
  for (const IndexedStep& step : index.steps) {
    events_.push_back(events_by_rank(step.plan));
    labels_.emplace_back(step.plan.samples.size());
  }
}

std::optional<std::string> RunsCheck::add(const Run& run) {
  auto wrong = difference_from_index(run, index_, events_[run.position][run.rank.value]);
  if (wrong) return wrong;
  const model::StepPlan& plan = index_.steps[run.position].plan;
  const auto planned = plan.micro_batches_of(run.rank);
  for (std::size_t m = 0; m < planned.size(); ++m) {
    const auto pieces = plan.pieces_of(planned[m]);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      labels_[run.position][pieces[i].sample.value] +=
          counted_labels(run.micro_batches[m].pieces[i]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> RunsCheck::check_labels(std::uint32_t position) const {
  const auto& samples = index_.steps[position].plan.samples;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint64_t labels = labels_[position][i];
    if (labels == samples[i].valid_labels) continue;
    return fmt::format("{} labels of sample {} count, planned were {}", labels,
                       model::to_string(samples[i].id), samples[i].valid_labels);
  }
  return std::nullopt;
}

}  // namespace batchloom::store
