// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

std::vector<model::PlanSample> plan_samples_of(std::span<const model::SampleMeta> samples) {
  std::vector<model::PlanSample> result;
  result.reserve(samples.size());
  for (const model::SampleMeta& sample : samples) {
    result.push_back({.id = sample.id,
                      .tokens = sample.tokens,
                      .valid_labels = sample.valid_labels,
                      .first_position = sample.first_position});
  }
  return result;
}

namespace {

/// Ids alone are moved about while they are sorted.
template <class Sample>
std::vector<Sample> sorted_by_id(std::vector<Sample>& samples) {
  struct Row {
    model::SampleId id;
    std::size_t place = 0;
  };
  std::vector<Row> rows;
  rows.reserve(samples.size());
  for (const Sample& sample : samples) rows.push_back({sample.id, rows.size()});
  std::ranges::sort(rows, {}, &Row::id);
  std::vector<Sample> sorted;
  sorted.reserve(samples.size());
  for (const Row& row : rows) sorted.push_back(std::move(samples[row.place]));
  return sorted;
}

template <class Sample>
Status sort_and_check(std::vector<Sample>& samples) {
  if (!std::ranges::is_sorted(samples, {}, &Sample::id)) samples = sorted_by_id(samples);
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

}  // namespace

Status sort_by_id(std::vector<model::PlanSample>& samples) {
  return sort_and_check(samples);
}

Status sort_by_id(std::vector<model::SampleMeta>& samples) {
  return sort_and_check(samples);
}

}  // namespace batchloom::planning
