// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/loader_scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/control/slow_looks.h"
#include "batchloom/control/step_demand.h"

namespace batchloom::control {
namespace {

/// Schedules are asked that often: it takes some looks at every source.
constexpr std::uint64_t kStepsOfOutlook = 8;

/// Averages over fewer steps say little.
constexpr std::uint64_t kStepsFirst = 8;

/// A step that takes so many times as long as steps do counts as that long: a pause, as while
/// trainers evaluate, is not their pace. A pace that has changed is reached in some tens of steps.
constexpr double kPauseMost = 4;

}  // namespace

LoaderScaler::LoaderScaler(planning::MixSpec mix, std::uint32_t threads,
                           const LoaderScalerOptions& options)
    : mix_(std::move(mix)),
      options_(options),
      threads_(threads),
      samples_(mix_.sources.size(), 0),
      ahead_(mix_.sources.size(), 0) {}

void LoaderScaler::average(const StepSeen& seen) {
  std::vector<double> counts(samples_.size(), 0);
  for (const model::SampleMeta& member : seen.members) counts[member.id.source.value] += 1;
  // The mean of the first steps, then a moving average.
  const double alpha = std::max(options_.alpha, 1 / static_cast<double>(++steps_));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    samples_[i] += alpha * (counts[i] - samples_[i]);
  }
  double took = seconds_of(seen.took);
  if (steps_ > kStepsFirst) took = std::min(took, kPauseMost * step_s_);
  step_s_ += alpha * (took - step_s_);
  starved_ = seconds_of(seen.waited) > options_.waited_most * std::max(took, step_s_);
}

bool LoaderScaler::all_measured(std::span<const SampleCost> costs) const {
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    if (samples_[i] > 0 && costs[i].samples == 0) return false;
  }
  return true;
}

std::vector<SourceDemand> LoaderScaler::demands(std::span<const SampleCost> costs) const {
  std::vector<double> samples(samples_.size());
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = std::max(samples_[i], ahead_[i]);
  return demands_of(samples, costs);
}

std::optional<ScaleChange> LoaderScaler::after(const StepSeen& seen,
                                               std::span<const SampleCost> costs,
                                               std::span<const planning::SourceState> states) {
  average(seen);
  ++since_look_;
  ++since_change_;
  if (steps_ < kStepsFirst || !all_measured(costs)) return std::nullopt;
  if (!is_ahead_known_ || seen.step.value % kStepsOfOutlook == 0) {
    ahead_ = samples_expected(mix_, costs, states,
                              {.first = seen.step, .count = options_.horizon_steps});
    is_ahead_known_ = true;
  }
  const std::vector<SourceDemand> wanted = demands(costs);
  double busy_s = 0;
  for (const SourceDemand& source : wanted) busy_s += source.samples * source.thread_s;
  load_ = step_s_ > 0 ? busy_s / (threads_ * step_s_) : 0;
  hot_ = load_ > options_.up_load ? hot_ + 1 : 0;
  cold_ = load_ < options_.down_load ? cold_ + 1 : 0;
  return decide(wanted);
}

std::optional<ScaleChange> LoaderScaler::decide(std::span<const SourceDemand> wanted) {
  if (is_divided_ && since_change_ <= options_.cool_down) return std::nullopt;
  const bool up = starved_ || hot_ >= options_.up_after;
  const bool down = cold_ >= options_.down_after;
  // Every now and then it is looked whether the same threads are to be divided in another way.
  const bool divide = !is_divided_ || since_look_ > options_.cool_down;
  if (!(up || down || divide) || since_look_ < options_.up_after) return std::nullopt;
  since_look_ = 0;
  const auto made =
      partition(wanted, options_.limits, starved_ ? std::nullopt : std::optional(step_s_));
  if (!made.is_ok()) return std::nullopt;  // Such a step comes in alone, whoever brings it.
  if (up && made->threads > threads_) return change(*made, why_up(wanted));
  if (down && made->threads < threads_) {
    return change(*made, fmt::format("load {:.2f} for {} steps", load_, cold_));
  }
  // With a load that asks for no other threads, those that there are have the same lanes.
  const bool stays = made->threads == threads_ || (hot_ == 0 && cold_ == 0);
  if (!stays || made->lanes == lanes_) return std::nullopt;
  Partition divided = *made;
  divided.threads = threads_;
  return change(divided, is_divided_ ? "the mix has changed" : "sources are measured");
}

std::optional<ScaleChange> LoaderScaler::change(const Partition& to, std::string why) {
  threads_ = to.threads;
  lanes_ = to.lanes;
  is_divided_ = true;
  hot_ = cold_ = since_change_ = 0;
  return ScaleChange{.partition = to, .why = std::move(why)};
}

std::string LoaderScaler::why_up(std::span<const SourceDemand> demands) const {
  const auto most = std::ranges::max_element(
      demands, {}, [](const SourceDemand& source) { return source.samples * source.thread_s; });
  return fmt::format("load {:.2f}{}, most of it by source '{}'", load_,
                     starved_ ? ", and steps wait for samples" : "",
                     mix_.sources[static_cast<std::size_t>(most - demands.begin())].name);
}

}  // namespace batchloom::control
