// SPDX-License-Identifier: Apache-2.0
// `batchloom whatif`: strategies compared on a cluster that is not there.
#include "cli/whatif.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/strategies.h"
#include "cli/commands.h"
#include "cli/lengths_input.h"
#include "cli/output_file.h"
#include "cli/published.h"
#include "cli/table.h"
#include "cli/tokens_text.h"

namespace batchloom::cli {
namespace {

using simulator::StrategyOutcome;
using simulator::WhatIf;

/// Who others are compared with, where it was replayed.
constexpr std::string_view kBases[] = {"static_cp", "none"};

/// What a run without --strategies shows beside the ladder, where it can plan: those that
/// MegaScale-Data's figure is of.
constexpr std::string_view kBeside[] = {"none", "two_level"};

double seconds_per_step(const StrategyOutcome& outcome) {
  return static_cast<double>(outcome.total_ns()) / 1e9 / static_cast<double>(outcome.steps.size());
}

/// Where the time of all ranks goes, by step.
struct Shares {
  planning::TimeParts busy;
  std::uint64_t idle_ns = 0;
  std::vector<std::uint64_t> bytes_by_level;

  explicit Shares(const StrategyOutcome& outcome) {
    for (const planning::PlanReport& step : outcome.steps) {
      busy.compute_ns += step.busy.compute_ns;
      busy.ring_ns += step.busy.ring_ns;
      busy.copy_ns += step.busy.copy_ns;
      idle_ns += step.idle_ns;
      bytes_by_level.resize(step.bytes_by_level.size());
      for (std::size_t i = 0; i < bytes_by_level.size(); ++i) {
        bytes_by_level[i] += step.bytes_by_level[i];
      }
    }
  }

  std::string percent(std::uint64_t of_ns) const {
    const auto all = static_cast<double>(busy.total_ns() + idle_ns);
    return fmt::format("{:.1f}%", all > 0 ? 100.0 * static_cast<double>(of_ns) / all : 0.0);
  }
};

/// Those of kBases that the table has a column for: static_cp always.
std::vector<std::string_view> bases_of(const WhatIf& outcome) {
  std::vector<std::string_view> bases;
  for (const std::string_view base : kBases) {
    if (base == kBases[0] || outcome.find(base) != nullptr) bases.push_back(base);
  }
  return bases;
}

std::string speedup_text(const WhatIf& outcome, std::string_view base,
                         const StrategyOutcome& fast) {
  const StrategyOutcome* const slow = outcome.find(base);
  if (slow == nullptr || slow->failure) return "";
  return fmt::format("{:.2f} (simulated)", speedup(*slow, fast));
}

Table::Row row_of(const WhatifReport& report, const ContextOutcome& context,
                  const StrategyOutcome& strategy) {
  const Shares shares(strategy);
  Table::Row row = {strategy.strategy, fmt::format("{:.3f}", seconds_per_step(strategy))};
  for (const std::string_view base : bases_of(context.outcome)) {
    row.push_back(speedup_text(context.outcome, base, strategy));
  }
  row.push_back(to_string(
      find_paper_ratio(report.args.lengths.lengths, context.context_tokens, strategy.strategy)));
  row.push_back(fmt::format("{:.3f}", static_cast<double>(strategy.total_ns()) /
                                          static_cast<double>(context.outcome.total_bound_ns())));
  for (const std::uint64_t part_ns :
       {shares.busy.compute_ns, shares.busy.ring_ns, shares.busy.copy_ns, shares.idle_ns}) {
    row.push_back(shares.percent(part_ns));
  }
  for (const std::uint64_t bytes : shares.bytes_by_level) {
    row.push_back(fmt::format(
        "{:.0f}", static_cast<double>(bytes) / 1e9 / static_cast<double>(strategy.steps.size())));
  }
  return row;
}

std::string strategies_table(const WhatifReport& report, const ContextOutcome& context) {
  Table::Row heading = {"strategy", "step s"};
  for (const std::string_view base : bases_of(context.outcome)) {
    heading.push_back(fmt::format("over {}", base));
  }
  for (const char* name :
       {"in the paper", "step/bound", "compute", "ring wait", "copy wait", "idle"}) {
    heading.emplace_back(name);
  }
  for (const model::Level& level : report.cluster.topology.levels()) {
    heading.push_back(fmt::format("GB in {}", level.name));
  }
  Table table(std::move(heading));
  std::string failures;
  for (const StrategyOutcome& strategy : context.outcome.strategies) {
    if (strategy.failure) {
      failures += fmt::format("{}\n", strategy.failure->message());
    } else {
      table.add(row_of(report, context, strategy));
    }
  }
  return table.to_text() + failures;
}

std::string variants_table(const WhatifReport& report, const ContextOutcome& context) {
  const std::string ours = simulator::ladder_of(report.cluster.topology).back();
  const WhatIf& as_given = *context.variants.front().outcome;
  Table::Row heading = {"assumption", "value"};
  for (const StrategyOutcome& strategy : as_given.strategies) {
    if (strategy.strategy != ours) {
      heading.push_back(fmt::format("{} over {} (simulated)", ours, strategy.strategy));
    }
  }
  Table table(std::move(heading));
  for (const VariantOutcome& variant : context.variants) {
    Table::Row row = {variant.assumption, variant.value};
    const StrategyOutcome* const fast = variant.outcome ? variant.outcome->find(ours) : nullptr;
    for (std::size_t i = 0; i < as_given.strategies.size(); ++i) {
      if (as_given.strategies[i].strategy == ours) continue;
      const StrategyOutcome* const slow =
          variant.outcome ? &variant.outcome->strategies[i] : nullptr;
      const bool both = fast != nullptr && slow != nullptr && !fast->failure && !slow->failure;
      row.push_back(both ? fmt::format("{:.2f}", speedup(*slow, *fast)) : "does not fit");
    }
    table.add(std::move(row));
  }
  return table.to_text();
}

std::string assumptions_text(const WhatifReport& report) {
  std::string links;
  for (const model::Level& level : report.cluster.topology.levels()) {
    links +=
        fmt::format("{}{:g} GB/s and {:g} us among {} ranks ({})", links.empty() ? "" : ", ",
                    static_cast<double>(level.bandwidth_bytes_per_s) / 1e9,
                    static_cast<double>(level.latency_ns) / 1e3, level.ranks_per_group, level.name);
  }
  return fmt::format(
      "Simulated: no step was run. What moves these ratios most:\n"
      "  links           {}\n"
      "  backward bytes  {} x those of forward\n"
      "  overlap         {} % of a ring step's computing hides the hop beside it\n"
      "  group rule      static groups are laid out for the context, whatever samples came\n"
      "The bound is that of hdp's plans: samples of up to {} tokens stay whole, and longer ones\n"
      "lie on the fewest ranks that hold them, or more in shares of at least {}. Others may end\n"
      "before it: who cuts finer, as static_cp can with short samples and fast links; and, where\n"
      "the cluster has offload, who takes fewer ranks with activations on the host, as\n"
      "naive_hdp, dp_balance and pp_balance may.\n"
      "In the papers:\n"
      "{}",
      links, report.options.times.backward_bytes_factor, report.options.times.overlap_percent,
      report.cluster.capacity_tokens, report.cluster.min_share_tokens, papers_text());
}

std::string to_text(const WhatifReport& report) {
  const Whatif& args = report.args;
  std::string text =
      fmt::format("{} HDP ranks ({}), costs {}; {}, {} steps of {}, seed {}\n",
                  report.cluster.topology.hdp_size(), model::to_string(report.cluster.topology),
                  report.cluster.costs.name, args.lengths.lengths, args.steps, report.step_text,
                  args.lengths.seed.value_or(0));
  for (const ContextOutcome& context : report.contexts) {
    text += fmt::format("\ncontext {}", tokens_text(context.context_tokens));
    if (context.steps < args.steps) {
      text += fmt::format(": the sources end after {} steps", context.steps);
    }
    if (context.left_out > 0) {
      text += fmt::format(": {} longer samples are left out", context.left_out);
    }
    text += "\n" + strategies_table(report, context);
    if (!context.variants.empty()) text += "\n" + variants_table(report, context);
  }
  return text + "\n" + assumptions_text(report);
}

/// Those of --strategies, or else those of the ladder.
std::vector<std::string> chosen_strategies(const Whatif& args, const model::Topology& topology) {
  if (!args.all) {
    return args.strategies.empty() ? simulator::ladder_of(topology) : args.strategies;
  }
  std::vector<std::string> names;
  for (const std::string_view name : planning::strategy_names()) names.emplace_back(name);
  return names;
}

/// Adds those of kBeside where no strategy was named.
std::vector<std::string> with_beside(const Whatif& args, std::vector<std::string> strategies) {
  for (const std::string_view name : kBeside) {
    if (only_beside(args, name)) strategies.emplace_back(name);
  }
  return strategies;
}

/// Takes those away again that nobody named and that cannot plan.
void drop_failed_beside(const Whatif& args, WhatIf& outcome) {
  std::erase_if(outcome.strategies, [&](const StrategyOutcome& strategy) {
    return strategy.failure && only_beside(args, strategy.strategy);
  });
}

/// One that was asked for by name and cannot plan is an error.
Status check_planned(const WhatifReport& report, const WhatIf& outcome) {
  if (report.args.all) return Status::ok();
  for (const StrategyOutcome& strategy : outcome.strategies) {
    if (strategy.failure) return *strategy.failure;
  }
  return Status::ok();
}

Result<ContextOutcome> replay_context(const WhatifReport& report, const LengthsInput& input,
                                      std::uint32_t context_tokens) {
  ContextOutcome context{.context_tokens = context_tokens,
                         .left_out = input.too_long(context_tokens),
                         .steps = 0,
                         .outcome = {},
                         .variants = {}};
  BL_ASSIGN_OR_RETURN(const simulator::LengthsByStep steps,
                      input.draw({.context_tokens = context_tokens,
                                  .step_tokens = report.args.lengths.tokens,
                                  .seed = report.args.lengths.seed,
                                  .steps = report.args.steps}));
  context.steps = steps.size();
  const auto strategies = chosen_strategies(report.args, report.cluster.topology);
  simulator::WhatIfOptions options = report.options;
  options.context_tokens = context_tokens;
  BL_ASSIGN_OR_RETURN(
      context.outcome,
      simulator::what_if(report.cluster, steps, with_beside(report.args, strategies), options));
  drop_failed_beside(report.args, context.outcome);
  BL_RETURN_IF_ERROR(check_planned(report, context.outcome));
  if (!report.args.assumptions) return context;
  for (simulator::Variant& variant : simulator::variants_of(report.cluster, options)) {
    Result<WhatIf> outcome =
        simulator::what_if(variant.cluster, steps, variant.strategies(strategies), variant.options);
    context.variants.push_back({.assumption = std::move(variant.assumption),
                                .value = std::move(variant.value),
                                .outcome = std::nullopt});
    if (outcome.is_ok()) context.variants.back().outcome = *std::move(outcome);
  }
  return context;
}

/// What was left to the lengths.
void fill_in(const LengthsInput& input, WhatifReport& report) {
  Whatif& args = report.args;
  const StepsWanted full = input.resolved({.context_tokens = {},
                                           .step_tokens = args.lengths.tokens,
                                           .seed = args.lengths.seed,
                                           .steps = args.steps});
  if (args.contexts.empty()) args.contexts = {*full.context_tokens};
  args.lengths.tokens = full.step_tokens;
  args.lengths.seed = full.seed;
  report.step_text = input.step_text(full);
}

bool writes_json_file(const Whatif& args) {
  return !args.json.empty() && args.json != "-";
}

/// What cannot be written is better told before everything is planned.
Status check_targets(const Whatif& args) {
  if (writes_json_file(args)) BL_RETURN_IF_ERROR(check_file_target(args.json));
  return args.svg.empty() ? Status::ok() : check_folder_target(args.svg);
}

Status check_order(const WhatifReport& report) {
  for (const ContextOutcome& context : report.contexts) {
    const Status order = simulator::check_ladder(context.outcome, report.cluster.topology);
    if (!order.is_ok()) {
      return order.with_context(fmt::format("context {}", tokens_text(context.context_tokens)));
    }
  }
  return Status::ok();
}

}  // namespace

bool only_beside(const Whatif& args, std::string_view strategy) {
  return !args.all && args.strategies.empty() &&
         std::ranges::find(kBeside, strategy) != std::end(kBeside);
}

double speedup(const StrategyOutcome& slow, const StrategyOutcome& fast) {
  return static_cast<double>(slow.total_ns()) / static_cast<double>(fast.total_ns());
}

Status run(const Whatif& args, Runtime& runtime) {
  BL_RETURN_IF_ERROR(check_targets(args));
  WhatifReport report{.args = args, .step_text = {}, .cluster = {}, .options = {}, .contexts = {}};
  BL_ASSIGN_OR_RETURN(report.cluster, simulator::read_cluster(args.lengths.cluster));
  BL_ASSIGN_OR_RETURN(const LengthsInput input, LengthsInput::open(args.lengths, runtime));
  fill_in(input, report);
  report.options.timeline = !args.json.empty() || !args.svg.empty();
  for (const std::uint32_t context_tokens : report.args.contexts) {
    Result<ContextOutcome> context = replay_context(report, input, context_tokens);
    if (!context.is_ok()) {
      return context.status().with_context(fmt::format("context {}", tokens_text(context_tokens)));
    }
    report.contexts.push_back(*std::move(context));
  }
  if (args.json == "-") {
    print(whatif_fields(report).to_json() + "\n");
  } else {
    print(to_text(report));
  }
  if (writes_json_file(args)) {
    BL_RETURN_IF_ERROR(write_file(args.json, whatif_fields(report).to_json() + "\n"));
  }
  if (!args.svg.empty()) BL_RETURN_IF_ERROR(draw_plots(report, args.svg));
  return args.check ? check_order(report) : Status::ok();
}

}  // namespace batchloom::cli
