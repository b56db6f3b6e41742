// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/weights_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace batchloom::planning {
namespace {

/// Where all weights can become 0: between two points, a schedule is 0 only if it is at the first.
std::set<model::Step> steps_to_look_at(const MixtureConfig& config, const MixtureState& state) {
  std::set<model::Step> steps = {state.step};
  for (const MixtureSource& source : config.sources) {
    for (const WeightPoint& point : source.weight.points()) {
      if (point.step > state.step) steps.insert(point.step);
    }
  }
  for (const WeightsEntry& entry : state.log) steps.insert(std::max(entry.from_step, state.step));
  return steps;
}

}  // namespace

Weight WeightsInForce::at(std::size_t source, model::Step step) const {
  if (!takes_part(source)) return Weight(0);
  return rows_[source].set_weight.value_or(sources_[source].weight.at(step));
}

model::Step WeightsInForce::constant_until(std::size_t source, model::Step step) const {
  if (!takes_part(source) || rows_[source].set_weight) return Schedule::kNeverChanges;
  return sources_[source].weight.constant_until(step);
}

Status add_to_log(MixtureState& state, model::Step from_step,
                  std::span<const SourceWeight> weights) {
  if (weights.empty()) return Status::invalid("new weights of no source");
  std::size_t waiting = weights.size();
  for (const WeightsEntry& entry : state.log) waiting += entry.weights.size();
  const std::size_t most = std::max(kMaxLogEntries, kMaxLogWeightsPerSource * state.sources.size());
  if (state.log.size() >= kMaxLogEntries || waiting > most) {
    return Status::exhausted(
        fmt::format("{} changes of weights wait for their steps already, and would have {} weights "
                    "with this one; at most {} with {} may: wait until some are in force",
                    state.log.size(), waiting, kMaxLogEntries, most));
  }
  WeightsEntry entry{from_step, state.version + 1, {weights.begin(), weights.end()}};
  std::ranges::sort(entry.weights, {}, &SourceWeight::source);
  for (std::size_t i = 0; i < entry.weights.size(); ++i) {
    const auto& [source, weight] = entry.weights[i];
    if (source.value >= state.sources.size()) {
      return Status::invalid(fmt::format("a new weight of source {}, of {} sources", source.value,
                                         state.sources.size()));
    }
    if (i > 0 && entry.weights[i - 1].source == source) {
      return Status::invalid(fmt::format("two new weights of source {}", source.value));
    }
    if (weight > kMaxWeight) {
      return Status::invalid(fmt::format("a weight of {} billionths of source {}; it is at most {}",
                                         weight.value, source.value, kMaxWeight.value));
    }
  }
  state.version = entry.version;
  const auto later = std::ranges::upper_bound(state.log, from_step, {}, &WeightsEntry::from_step);
  state.log.insert(later, std::move(entry));
  return Status::ok();
}

bool apply_due_updates(MixtureState& state) {
  const auto due = std::ranges::upper_bound(state.log, state.step, {}, &WeightsEntry::from_step);
  if (due == state.log.begin()) return false;
  for (auto entry = state.log.begin(); entry != due; ++entry) {
    for (const auto& [source, weight] : entry->weights) {
      state.sources[source.value].set_weight = weight;
    }
  }
  state.log.erase(state.log.begin(), due);
  return true;
}

Status check_some_weight(const MixtureConfig& config, const MixtureState& state) {
  MixtureState later = state;
  const WeightsInForce weights(config.sources, later.sources);
  for (const model::Step step : steps_to_look_at(config, state)) {
    later.step = step;
    apply_due_updates(later);
    std::size_t source = 0;
    while (source < weights.size() && weights.at(source, step).value == 0) ++source;
    if (source < weights.size()) continue;
    return Status::invalid(
        fmt::format("in step {} no source that has records weighs anything; give one a weight "
                    "above 0",
                    step.value));
  }
  return Status::ok();
}

}  // namespace batchloom::planning
