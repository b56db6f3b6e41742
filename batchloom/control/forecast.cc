// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

#include "batchloom/planning/plan_report.h"

namespace batchloom::control {
namespace {

void add_ratio(double ratio, RatioOverSteps& to) {
  const auto steps = static_cast<double>(to.steps);
  to.mean = (to.mean * steps + ratio) / (steps + 1);
  to.worst = to.steps == 0 ? ratio : std::max(to.worst, ratio);
  ++to.steps;
}

/// Adds up what steps hold.
class ForecastSum {
 public:
  ForecastSum(std::span<const planning::SourceRecords> sources, const BlockWidths& widths)
      : records_(sources), widths_(widths) {
    sum_.sources.resize(sources.size());
  }

  /// Errors: those of report_of().
  Status add(const planning::PlannedStep& step, const planning::CostModel& costs) {
    ++sum_.steps;
    std::uint64_t bytes = 0;
    for (const model::SampleMeta& member : step.members) {
      add_sample(step.step, member);
      bytes += loaded_bytes(member, widths_);
    }
    sum_.largest_step_bytes = std::max(sum_.largest_step_bytes, bytes);
    BL_ASSIGN_OR_RETURN(const planning::PlanReport report,
                        planning::report_of(step.layout.plan, costs));
    add_ratio(report.before.imbalance(), sum_.imbalance_before);
    add_ratio(report.after.imbalance(), sum_.imbalance_after);
    if (report.lower_bound_ns != 0) {
      const auto bound = static_cast<double>(report.lower_bound_ns);
      add_ratio(static_cast<double>(report.makespan_ns) / bound, sum_.gap);
    }
    return Status::ok();
  }

  /// `after`: the state after the last step.
  Forecast end(const planning::MixtureState& after, bool sources_stop) {
    sum_.sources_stop = sources_stop;
    for (std::size_t i = 0; i < sum_.sources.size(); ++i) {
      const planning::SourceState& state = after.sources[i];
      const auto records = static_cast<double>(std::max<std::uint64_t>(records_[i].records, 1));
      sum_.sources[i].passes =
          static_cast<double>(state.epoch.value) + static_cast<double>(state.place) / records;
      sum_.sources[i].gone = state.gone;
    }
    const auto has_samples = [](const LengthBand& band) { return band.samples > 0; };
    const auto first = std::ranges::find_if(bands_, has_samples);
    const auto last = std::find_if(bands_.rbegin(), bands_.rend(), has_samples).base();
    if (first < last) sum_.lengths.assign(first, last);
    return std::move(sum_);
  }

 private:
  void add_sample(model::Step step, const model::SampleMeta& sample) {
    ++sum_.samples;
    sum_.tokens += sample.tokens;
    sum_.longest_tokens = std::max(sum_.longest_tokens, sample.tokens);
    SourceForecast& source = sum_.sources[sample.id.source.value];
    ++source.samples;
    source.tokens += sample.tokens;
    if (!source.first_step) source.first_step = step;
    source.last_step = step;
    const std::uint64_t tokens_max = std::bit_ceil(std::uint64_t{sample.tokens});
    LengthBand& band = bands_[static_cast<std::size_t>(std::countr_zero(tokens_max))];
    band.tokens_max = tokens_max;
    ++band.samples;
    band.tokens += sample.tokens;
  }

  const std::span<const planning::SourceRecords> records_;
  const BlockWidths widths_;
  Forecast sum_;
  std::array<LengthBand, 33> bands_ = {};  // By the power of two: up to 2^32.
};

}  // namespace

Result<Forecast> forecast(const ForecastInputs& inputs, std::uint64_t steps, Runtime& runtime,
                          const CallOptions& call) {
  const auto& [graph, metadata, topology, widths] = inputs;
  const planning::CostModel& costs = *graph.find(planning::Modality::kText)->cost;
  BL_ASSIGN_OR_RETURN(planning::PlannerState state, planning::first_state(graph, metadata));
  ForecastSum sum(metadata.sources(), widths);
  for (std::uint64_t number = 0; number < steps; ++number) {
    BL_RETURN_IF_ERROR(runtime.check(call));
    auto planned = planning::plan_step(graph, state, metadata, topology);
    if (!planned.is_ok()) {
      return planned.status().with_context(fmt::format("planning step {}", number));
    }
    if (!*planned) return sum.end(state.mixture, true);
    BL_RETURN_IF_ERROR(sum.add(**planned, costs));
    state = std::move((*planned)->next);
  }
  return sum.end(state.mixture, state.mixture.ended);
}

}  // namespace batchloom::control
