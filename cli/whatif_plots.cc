// SPDX-License-Identifier: Apache-2.0
// The plots of `batchloom whatif --svg`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/output_file.h"
#include "cli/svg_chart.h"
#include "cli/tokens_text.h"
#include "cli/whatif.h"

namespace batchloom::cli {
namespace {

using simulator::StrategyOutcome;

constexpr std::uint32_t kRowsMax = 128;  ///< Of a time line; of more ranks, every nth is drawn.
constexpr double kMostMs = 10'000;       ///< Longer steps are drawn in seconds.

std::string subject_of(const WhatifReport& report) {
  return fmt::format("{}, {} ranks, {} a step (simulated)", report.args.lengths.lengths,
                     report.cluster.topology.hdp_size(), report.step_text);
}

/// Of each strategy under each context, `value`, or nothing.
template <class Value>
BarChart bars_of(const WhatifReport& report, std::string title, std::string y_label, Value value) {
  BarChart chart{
      .title = std::move(title), .y_label = std::move(y_label), .groups = {}, .series = {}};
  for (const ContextOutcome& context : report.contexts) {
    chart.groups.push_back(fmt::format("context {}", tokens_text(context.context_tokens)));
  }
  for (const StrategyOutcome& first : report.contexts.front().outcome.strategies) {
    if (only_beside(report.args, first.strategy)) continue;
    BarSeries& series = chart.series.emplace_back(BarSeries{first.strategy, {}});
    for (const ContextOutcome& context : report.contexts) {
      const StrategyOutcome* const strategy = context.outcome.find(first.strategy);
      series.values.push_back(strategy == nullptr || strategy->failure ? NAN
                                                                       : value(context, *strategy));
    }
  }
  return chart;
}

/// Every nth rank's first stage.
TimelineChart timeline_chart(const WhatifReport& report, const ContextOutcome& context,
                             const StrategyOutcome& strategy) {
  const std::uint32_t ranks = report.cluster.topology.hdp_size();
  const std::uint32_t every = (ranks + kRowsMax - 1) / kRowsMax;
  const auto step_ns =
      static_cast<double>(std::max<std::uint64_t>(strategy.steps.front().step_ns, 1));
  const bool in_ms = step_ns * 1e-6 < kMostMs;
  const double unit = in_ms ? 1e-6 : 1e-9;  // Of a nanosecond.
  TimelineChart chart{
      .title = fmt::format("{}: context {}, {}", strategy.strategy,
                           tokens_text(context.context_tokens), subject_of(report)),
      .x_label = in_ms ? "ms" : "s",
      .y_label = every == 1 ? "HDP rank" : fmt::format("HDP rank (one in {})", every),
      .rows = (ranks + every - 1) / every,
      .end = step_ns * unit,
      .spans = {}};
  for (const simulator::RankSpan& span : strategy.timeline) {
    if (span.rank % every != 0 || span.stage != 0) continue;
    const std::uint64_t computed_ns = std::min(span.begin_ns + span.compute_ns, span.end_ns);
    const double begin = static_cast<double>(span.begin_ns) * unit;
    const double computed = static_cast<double>(computed_ns) * unit;
    const bool forward = span.phase == model::Phase::kForward;
    chart.spans.push_back({.row = span.rank / every,
                           .activity = forward ? Activity::kForward : Activity::kBackward,
                           .begin = begin,
                           .end = computed});
    if (computed_ns == span.end_ns) continue;
    chart.spans.push_back({.row = span.rank / every,
                           .activity = Activity::kWaiting,
                           .begin = computed,
                           .end = static_cast<double>(span.end_ns) * unit});
  }
  return chart;
}

}  // namespace

Status draw_plots(const WhatifReport& report, const std::string& folder) {
  BL_RETURN_IF_ERROR(make_folder(folder));
  const BarChart times = bars_of(report, "Step time: " + subject_of(report), "seconds a step",
                                 [](const ContextOutcome&, const StrategyOutcome& strategy) {
                                   return static_cast<double>(strategy.total_ns()) / 1e9 /
                                          static_cast<double>(strategy.steps.size());
                                 });
  BL_RETURN_IF_ERROR(write_file(folder + "/step_time.svg", draw_bars(times)));
  const BarChart gaps =
      bars_of(report, "Gap to the lower bound: " + subject_of(report), "step time / bound",
              [](const ContextOutcome& context, const StrategyOutcome& strategy) {
                return static_cast<double>(strategy.total_ns()) /
                       static_cast<double>(context.outcome.total_bound_ns());
              });
  BL_RETURN_IF_ERROR(write_file(folder + "/gap.svg", draw_bars(gaps)));
  const ContextOutcome& longest = report.contexts.back();
  for (const StrategyOutcome& strategy : longest.outcome.strategies) {
    if (strategy.failure || only_beside(report.args, strategy.strategy)) continue;
    BL_RETURN_IF_ERROR(write_file(fmt::format("{}/timeline-{}.svg", folder, strategy.strategy),
                                  draw_timeline(timeline_chart(report, longest, strategy))));
  }
  return Status::ok();
}

}  // namespace batchloom::cli
