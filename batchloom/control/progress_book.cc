// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/progress_book.h"

#include <algorithm>
#include <utility>

#include "batchloom/planning/plan_report.h"
#include "batchloom/planning/weights_log.h"

namespace batchloom::control {

ProgressBook::ProgressBook(ProgressBegin begin)
    : sources_(std::move(begin.sources)), since_(begin.now) {
  progress_.next_step = begin.next_step;
  progress_.struck = begin.struck;
  progress_.sources.resize(std::max(sources_.size(), begin.bad_records.size()));
  for (std::size_t i = 0; i < begin.bad_records.size(); ++i) {
    progress_.sources[i].bad_records = begin.bad_records[i];
  }
}

std::vector<double> ProgressBook::shares_in(const planning::PlannedStep& step) const {
  const planning::MixtureState& state = step.next.mixture;
  std::vector<double> shares(std::min(sources_.size(), state.sources.size()), 0);
  const planning::WeightsInForce weights(sources_, state.sources);
  double total = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] = static_cast<double>(weights.at(i, step.step).value);
    total += shares[i];
  }
  if (total == 0) return shares;
  for (double& share : shares) share /= total;
  return shares;
}

void ProgressBook::built(const planning::PlannedStep& step, const planning::CostModel& costs) {
  const auto report = planning::report_of(step.layout.plan, costs);
  const std::vector<double> shares = shares_in(step);
  const std::vector<planning::SourceState>& rows = step.next.mixture.sources;
  std::uint64_t tokens = 0;
  const MutexLock lock(mutex_);
  std::vector<SourceProgress>& sources = progress_.sources;
  if (sources.size() < rows.size()) sources.resize(rows.size());
  for (const model::SampleMeta& sample : step.members) {
    SourceProgress& source = sources[sample.id.source.value];
    ++source.samples;
    source.tokens += sample.tokens;
    tokens += sample.tokens;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) sources[i].epoch = rows[i].epoch.value;
  for (std::size_t i = 0; i < shares.size(); ++i) sources[i].share = shares[i];
  progress_.samples += step.members.size();
  progress_.tokens += tokens;
  if (!report.is_ok()) return;
  ++reports_;
  before_ += report->before.imbalance();
  after_ += report->after.imbalance();
}

void ProgressBook::committed(store::Step next_step, std::uint64_t steps, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  progress_.next_step = next_step;
  progress_.steps += steps;
  progress_.bytes += bytes;
}

void ProgressBook::struck(std::uint64_t records, model::SourceId source, std::uint64_t of_source) {
  const MutexLock lock(mutex_);
  progress_.struck = records;
  progress_.sources[source.value].bad_records = of_source;
}

void ProgressBook::lead(std::uint64_t steps) {
  const MutexLock lock(mutex_);
  progress_.lead = steps;
}

void ProgressBook::wait_for(WaitsFor what, Time now) {
  const MutexLock lock(mutex_);
  progress_.waited[index_of(progress_.waits_for)] += now - since_;
  progress_.waits_for = what;
  since_ = now;
}

PipelineProgress ProgressBook::progress(Time now) const {
  const MutexLock lock(mutex_);
  PipelineProgress progress = progress_;
  // Another wait may have begun since `now` was looked at.
  progress.waited[index_of(progress.waits_for)] += std::max(now - since_, Duration::zero());
  if (reports_ > 0) {
    progress.imbalance_before = before_ / static_cast<double>(reports_);
    progress.imbalance_after = after_ / static_cast<double>(reports_);
  }
  return progress;
}

}  // namespace batchloom::control
