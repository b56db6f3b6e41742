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
#include "cli/table.h"

namespace batchloom::cli {
namespace {

using simulator::StrategyOutcome;
using simulator::WhatIf;

constexpr std::uint32_t k2M = std::uint32_t{2} << 20;
constexpr std::string_view kByted = "byted-like";
constexpr std::string_view kGithub = "github-like";
constexpr std::string_view kStatic = "static_cp";
// Ablation (7B, 2M, 1,024 GPUs) and figure 17 ("up to"). Its balance is DP-Balance, with stages
// PP-Balance.
constexpr PaperRatio kPaperRatios[] = {{kByted, k2M, "naive_hdp", "1.59 to 2.01"},
                                       {kByted, k2M, "dp_balance", "3.69 to 4.26"},
                                       {kGithub, k2M, "dp_balance", "up to 7.89"},
                                       {kGithub, k2M, "pp_balance", "3.42 to 4.28"}};

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

std::string speedup_text(const WhatIf& outcome, const StrategyOutcome& fast) {
  const StrategyOutcome* const slow = outcome.find(kStatic);
  if (slow == nullptr || slow->failure) return "";
  return fmt::format("{:.2f} (simulated)", speedup(*slow, fast));
}

Table::Row row_of(const WhatifReport& report, const ContextOutcome& context,
                  const StrategyOutcome& strategy) {
  const Shares shares(strategy);
  Table::Row row = {
      strategy.strategy,
      fmt::format("{:.3f}", seconds_per_step(strategy)),
      speedup_text(context.outcome, strategy),
      std::string(
          paper_ratio(report.args.lengths.lengths, context.context_tokens, strategy.strategy)),
      fmt::format("{:.3f}", static_cast<double>(strategy.total_ns()) /
                                static_cast<double>(context.outcome.total_bound_ns())),
      shares.percent(shares.busy.compute_ns),
      shares.percent(shares.busy.ring_ns),
      shares.percent(shares.busy.copy_ns),
      shares.percent(shares.idle_ns)};
  for (const std::uint64_t bytes : shares.bytes_by_level) {
    row.push_back(fmt::format(
        "{:.0f}", static_cast<double>(bytes) / 1e9 / static_cast<double>(strategy.steps.size())));
  }
  return row;
}

std::string strategies_table(const WhatifReport& report, const ContextOutcome& context) {
  Table::Row heading = {"strategy", "step s",    "over static_cp", "in the paper", "step/bound",
                        "compute",  "ring wait", "copy wait",      "idle"};
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
  Table::Row heading = {"assumption", "value"};
  for (const StrategyOutcome& strategy : context.outcome.strategies) {
    if (strategy.strategy != ours) {
      heading.push_back(fmt::format("{} over {} (simulated)", ours, strategy.strategy));
    }
  }
  Table table(std::move(heading));
  for (const VariantOutcome& variant : context.variants) {
    Table::Row row = {variant.assumption, variant.value};
    const StrategyOutcome* const fast = variant.outcome ? variant.outcome->find(ours) : nullptr;
    for (const StrategyOutcome& strategy : context.outcome.strategies) {
      if (strategy.strategy == ours) continue;
      const StrategyOutcome* const slow =
          variant.outcome ? variant.outcome->find(strategy.strategy) : nullptr;
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
      "In the paper: ByteScale (arXiv 2502.21231), measured on 1,024 GPUs and more whose links it\n"
      "does not state, over its own static groups, with other data of the same shape.\n",
      links, report.options.times.backward_bytes_factor, report.options.times.overlap_percent);
}

std::string to_text(const WhatifReport& report) {
  const Whatif& args = report.args;
  std::string text =
      fmt::format("{} HDP ranks ({}), costs {}; {}, {} steps of {} tokens, seed {}\n",
                  report.cluster.topology.hdp_size(), model::to_string(report.cluster.topology),
                  report.cluster.costs.name, args.lengths.lengths, args.steps,
                  tokens_text(*args.lengths.tokens), args.lengths.seed);
  for (const ContextOutcome& context : report.contexts) {
    text += fmt::format("\ncontext {}", tokens_text(context.context_tokens));
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
                         .outcome = {},
                         .variants = {}};
  BL_ASSIGN_OR_RETURN(const simulator::LengthsByStep steps,
                      input.draw({.context_tokens = context_tokens,
                                  .step_tokens = *report.args.lengths.tokens,
                                  .steps = report.args.steps,
                                  .seed = report.args.lengths.seed}));
  const auto strategies = chosen_strategies(report.args, report.cluster.topology);
  simulator::WhatIfOptions options = report.options;
  options.context_tokens = context_tokens;
  BL_ASSIGN_OR_RETURN(context.outcome,
                      simulator::what_if(report.cluster, steps, strategies, options));
  BL_RETURN_IF_ERROR(check_planned(report, context.outcome));
  if (!report.args.assumptions) return context;
  for (simulator::Variant& variant : simulator::variants_of(report.cluster, options)) {
    Result<WhatIf> outcome =
        simulator::what_if(variant.cluster, steps, strategies, variant.options);
    context.variants.push_back({.assumption = std::move(variant.assumption),
                                .value = std::move(variant.value),
                                .outcome = std::nullopt});
    if (outcome.is_ok()) context.variants.back().outcome = *std::move(outcome);
  }
  return context;
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

std::span<const PaperRatio> paper_ratios() {
  return kPaperRatios;
}

std::string_view paper_ratio(std::string_view lengths, std::uint32_t context_tokens,
                             std::string_view strategy) {
  for (const PaperRatio& paper : kPaperRatios) {
    if (paper.lengths == lengths && paper.context_tokens == context_tokens &&
        paper.strategy == strategy) {
      return paper.ratio;
    }
  }
  return {};
}

double speedup(const StrategyOutcome& slow, const StrategyOutcome& fast) {
  return static_cast<double>(slow.total_ns()) / static_cast<double>(fast.total_ns());
}

std::string tokens_text(std::uint64_t tokens) {
  constexpr std::uint64_t kKi = 1 << 10;
  constexpr std::uint64_t kMi = 1 << 20;
  if (tokens >= kMi && tokens % kMi == 0) return fmt::format("{}M", tokens / kMi);
  if (tokens >= kKi && tokens % kKi == 0) return fmt::format("{}K", tokens / kKi);
  return std::to_string(tokens);
}

Status run(const Whatif& args, Runtime&) {
  WhatifReport report{.args = args, .cluster = {}, .options = {}, .contexts = {}};
  BL_ASSIGN_OR_RETURN(report.cluster, simulator::read_cluster(args.lengths.cluster));
  BL_ASSIGN_OR_RETURN(const LengthsInput input, open_lengths(args.lengths));
  report.options.timeline = !args.json.empty() || !args.svg.empty();
  for (const std::uint32_t context_tokens : args.contexts) {
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
  if (!args.json.empty() && args.json != "-") {
    BL_RETURN_IF_ERROR(write_file(args.json, whatif_fields(report).to_json() + "\n"));
  }
  if (!args.svg.empty()) BL_RETURN_IF_ERROR(draw_plots(report, args.svg));
  return args.check ? check_order(report) : Status::ok();
}

}  // namespace batchloom::cli
