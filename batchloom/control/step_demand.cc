// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/step_demand.h"

#include <algorithm>

namespace batchloom::control {
namespace {

bool is_known(const SampleCost& cost) {
  return cost.samples > 0;
}

/// In the mean of the sources of which it is known; 1 where there are none.
double mean_tokens(std::span<const SampleCost> costs) {
  double sum = 0;
  double known = 0;
  for (const SampleCost& cost : costs) {
    if (!is_known(cost)) continue;
    sum += cost.tokens;
    ++known;
  }
  return known > 0 ? std::max(sum / known, 1.0) : 1.0;
}

double weight_of(const planning::MixSource& source, const planning::SourceState* state,
                 model::Step step) {
  if (state != nullptr && state->gone) return 0;
  const planning::Weight weight =
      state != nullptr && state->set_weight ? *state->set_weight : source.weight.at(step);
  return static_cast<double>(weight.value);
}

}  // namespace

planning::MixSpec mix_of_records(const planning::MixSpec& mix, const planning::Metadata& metadata) {
  planning::MixSpec with_records = mix;
  for (std::size_t i = 0; i < with_records.sources.size(); ++i) {
    if (metadata.sources()[i].records > 0) continue;
    with_records.sources[i].weight = planning::Schedule(planning::Weight(0));
  }
  return with_records;
}

std::vector<double> samples_expected(const planning::MixSpec& mix,
                                     std::span<const SampleCost> costs,
                                     std::span<const planning::SourceState> states,
                                     const StepRange& range) {
  const bool counts_tokens = mix.unit == planning::StepUnit::kTokens;
  const double unknown_tokens = mean_tokens(costs);
  const std::uint64_t last = std::max<std::uint64_t>(range.count, 1) - 1;
  const std::uint64_t looks = std::min(last, kStepsLookedAt - 1);
  std::vector<double> most(mix.sources.size(), 0);
  std::vector<double> weights(mix.sources.size(), 0);
  for (std::uint64_t look = 0; look <= looks; ++look) {
    const model::Step step = range.first + (looks == 0 ? 0 : last * look / looks);
    double all = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const planning::SourceState* state = i < states.size() ? &states[i] : nullptr;
      weights[i] = weight_of(mix.sources[i], state, step);
      all += weights[i];
    }
    if (all <= 0) continue;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double units = static_cast<double>(mix.units_per_step) * weights[i] / all;
      const bool has_tokens = i < costs.size() && is_known(costs[i]);
      const double tokens = has_tokens ? std::max(costs[i].tokens, 1.0) : unknown_tokens;
      most[i] = std::max(most[i], counts_tokens ? units / tokens : units);
    }
  }
  return most;
}

std::vector<SourceDemand> demands_of(std::span<const double> samples,
                                     std::span<const SampleCost> costs) {
  SampleCost dearest;
  const auto per_token = [](const SampleCost& cost) {
    return cost.thread_s / std::max(cost.tokens, 1.0);
  };
  for (const SampleCost& cost : costs) {
    if (is_known(cost) && (!is_known(dearest) || per_token(cost) > per_token(dearest))) {
      dearest = cost;
    }
  }
  const double tokens_dearest = std::max(dearest.tokens, 1.0);
  const double unknown = mean_tokens(costs) / tokens_dearest;
  std::vector<SourceDemand> demands;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool known = i < costs.size() && is_known(costs[i]);
    const SampleCost& cost = known ? costs[i] : dearest;
    const double scale = known ? 1 : unknown;
    demands.push_back({.samples = samples[i],
                       .thread_s = cost.thread_s * scale,
                       .cpu_s = cost.cpu_s * scale,
                       .bytes = cost.bytes * scale});
  }
  return demands;
}

}  // namespace batchloom::control
