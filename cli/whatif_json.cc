// SPDX-License-Identifier: Apache-2.0
// What `batchloom whatif --json` writes; tools/plot.py reads it.
#include <fmt/format.h>

#include "cli/published.h"
#include "cli/whatif.h"

namespace batchloom::cli {
namespace {

using simulator::StrategyOutcome;

Fields cluster_fields(const simulator::Cluster& cluster) {
  std::vector<Fields> levels;
  for (const model::Level& level : cluster.topology.levels()) {
    levels.emplace_back()
        .add("name", level.name)
        .add("ranks", std::uint64_t{level.ranks_per_group})
        .add("bandwidth_bytes_per_s", level.bandwidth_bytes_per_s)
        .add("latency_ns", level.latency_ns);
  }
  Fields fields;
  fields.add("axes", model::to_string(cluster.topology))
      .add("hdp_ranks", std::uint64_t{cluster.topology.hdp_size()})
      .add("cost_model", cluster.costs.name)
      .add("capacity_tokens", std::uint64_t{cluster.capacity_tokens})
      .add("min_share_tokens", std::uint64_t{cluster.min_share_tokens})
      .add("offload", cluster.offload)
      .add("levels", std::span<const Fields>(levels));
  return fields;
}

/// A column of a table of numbers.
template <class Row, class Get>
std::vector<std::uint64_t> column_of(const std::vector<Row>& rows, Get get) {
  std::vector<std::uint64_t> column;
  column.reserve(rows.size());
  for (const Row& row : rows) column.push_back(get(row));
  return column;
}

void add_column(std::string_view name, const std::vector<std::uint64_t>& column, Fields& fields) {
  fields.add(name, std::span<const std::uint64_t>(column));
}

/// By span, in columns.
Fields timeline_fields(const std::vector<simulator::RankSpan>& spans) {
  using Span = simulator::RankSpan;
  Fields fields;
  add_column("rank", column_of(spans, [](const Span& span) { return span.rank; }), fields);
  add_column("stage", column_of(spans, [](const Span& span) { return span.stage; }), fields);
  add_column("backward",
             column_of(spans,
                       [](const Span& span) {
                         return span.phase == model::Phase::kBackward ? std::uint64_t{1} : 0;
                       }),
             fields);
  add_column("ring", column_of(spans, [](const Span& span) { return span.ring; }), fields);
  add_column("begin_ns", column_of(spans, [](const Span& span) { return span.begin_ns; }), fields);
  add_column("end_ns", column_of(spans, [](const Span& span) { return span.end_ns; }), fields);
  add_column("compute_ns", column_of(spans, [](const Span& span) { return span.compute_ns; }),
             fields);
  return fields;
}

/// By step, in columns.
void add_steps(const StrategyOutcome& strategy, Fields& fields) {
  using Step = planning::PlanReport;
  const std::vector<Step>& steps = strategy.steps;
  add_column("step_ns", column_of(steps, [](const Step& step) { return step.step_ns; }), fields);
  add_column("compute_ns", column_of(steps, [](const Step& step) { return step.busy.compute_ns; }),
             fields);
  add_column("ring_wait_ns", column_of(steps, [](const Step& step) { return step.busy.ring_ns; }),
             fields);
  add_column("copy_wait_ns", column_of(steps, [](const Step& step) { return step.busy.copy_ns; }),
             fields);
  add_column("idle_ns", column_of(steps, [](const Step& step) { return step.idle_ns; }), fields);
  add_column("padding_tokens",
             column_of(steps, [](const Step& step) { return step.padding_tokens; }), fields);
  std::vector<std::uint64_t> bytes;
  for (const Step& step : steps) {
    bytes.resize(step.bytes_by_level.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += step.bytes_by_level[i];
  }
  add_column("ring_bytes_by_level", bytes, fields);
}

/// What is not published is empty.
void add_paper(const PaperRatio* published, Fields& fields) {
  const PaperRatio none;
  const PaperRatio& ratio = published != nullptr ? *published : none;
  fields.add("speedup_in_the_paper", ratio.ratio)
      .add("over_in_the_paper", ratio.over)
      .add("paper", published != nullptr ? ratio.paper->name : std::string_view());
}

Fields strategy_fields(const WhatifReport& report, const ContextOutcome& context,
                       const StrategyOutcome& strategy) {
  Fields fields;
  fields.add("strategy", strategy.strategy);
  if (strategy.failure) {
    fields.add("failure", strategy.failure->message());
    return fields;
  }
  add_steps(strategy, fields);
  for (const std::string_view base : {"static_cp", "none"}) {
    const StrategyOutcome* const slow = context.outcome.find(base);
    if (slow == nullptr || slow->failure) continue;
    fields.add_decimal(fmt::format("speedup_over_{}_simulated", base), speedup(*slow, strategy), 4);
  }
  add_paper(
      find_paper_ratio(report.args.lengths.lengths, context.context_tokens, strategy.strategy),
      fields);
  fields.add_decimal("gap",
                     static_cast<double>(strategy.total_ns()) /
                         static_cast<double>(context.outcome.total_bound_ns()),
                     4);
  fields.add("in_plots", !only_beside(report.args, strategy.strategy));
  fields.add("timeline", timeline_fields(strategy.timeline));
  return fields;
}

Fields variant_fields(const VariantOutcome& variant) {
  Fields fields;
  fields.add("assumption", variant.assumption).add("value", variant.value);
  std::vector<Fields> rows;
  if (variant.outcome) {
    for (const StrategyOutcome& strategy : variant.outcome->strategies) {
      Fields& row = rows.emplace_back();
      row.add("strategy", strategy.strategy);
      if (!strategy.failure) row.add("total_ns", strategy.total_ns());
    }
  }
  fields.add("strategies", std::span<const Fields>(rows));
  return fields;
}

Fields context_fields(const WhatifReport& report, const ContextOutcome& context) {
  std::vector<Fields> strategies, variants;
  for (const StrategyOutcome& strategy : context.outcome.strategies) {
    strategies.push_back(strategy_fields(report, context, strategy));
  }
  for (const VariantOutcome& variant : context.variants)
    variants.push_back(variant_fields(variant));
  Fields fields;
  fields.add("context_tokens", std::uint64_t{context.context_tokens})
      .add("left_out", context.left_out)
      .add("steps", context.steps);
  add_column("bound_ns", context.outcome.bounds_ns, fields);
  fields.add("strategies", std::span<const Fields>(strategies))
      .add("assumptions", std::span<const Fields>(variants));
  return fields;
}

}  // namespace

Fields whatif_fields(const WhatifReport& report) {
  std::vector<Fields> contexts;
  for (const ContextOutcome& context : report.contexts) {
    contexts.push_back(context_fields(report, context));
  }
  Fields fields;
  fields.add("simulated", true)
      .add("lengths", report.args.lengths.lengths)
      .add("steps", report.args.steps)
      .add("step", report.step_text)
      .add("tokens", report.args.lengths.tokens.value_or(0))
      .add("seed", report.args.lengths.seed.value_or(0))
      .add("backward_bytes_factor", std::uint64_t{report.options.times.backward_bytes_factor})
      .add("overlap_percent", std::uint64_t{report.options.times.overlap_percent})
      .add("group_rule", "context")
      .add("bound_capacity_tokens", std::uint64_t{report.cluster.capacity_tokens})
      .add("bound_min_share_tokens", std::uint64_t{report.cluster.min_share_tokens})
      .add("cluster", cluster_fields(report.cluster))
      .add("contexts", std::span<const Fields>(contexts));
  return fields;
}

}  // namespace batchloom::cli
