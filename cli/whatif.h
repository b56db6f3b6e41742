// SPDX-License-Identifier: Apache-2.0
// What `batchloom whatif` found, for a table, for JSON and for plots.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/simulator/what_if.h"
#include "cli/args.h"
#include "cli/json.h"

namespace batchloom::cli {

/// The same steps with one assumption changed.
struct VariantOutcome {
  std::string assumption;
  std::string value;
  std::optional<simulator::WhatIf> outcome;  ///< Absent where not every sample fits any more.
};

/// The steps under one context.
struct ContextOutcome {
  std::uint32_t context_tokens = 0;
  std::uint64_t left_out = 0;  ///< Of a file's lengths: those above the context.
  simulator::WhatIf outcome;
  std::vector<VariantOutcome> variants;
};

struct WhatifReport {
  Whatif args;
  simulator::Cluster cluster;
  simulator::WhatIfOptions options;  ///< Of which the context changes.
  std::vector<ContextOutcome> contexts;
};

/// A speed-up over static context parallelism that a paper measured.
struct PaperRatio {
  std::string_view lengths;  ///< The distribution of ours that is made after its data.
  std::uint32_t context_tokens = 0;
  std::string_view strategy;
  std::string_view ratio;
};
/// ByteScale (arXiv 2502.21231), evaluation.
std::span<const PaperRatio> paper_ratios();
/// What the paper says of a strategy on these lengths; empty where it says nothing.
std::string_view paper_ratio(std::string_view lengths, std::uint32_t context_tokens,
                             std::string_view strategy);

/// How many times as long the steps take with `slow` as with `fast`.
double speedup(const simulator::StrategyOutcome& slow, const simulator::StrategyOutcome& fast);

/// "256K", "2M", or the number.
std::string tokens_text(std::uint64_t tokens);

/// Everything, timelines included.
Fields whatif_fields(const WhatifReport& report);

/// Writes step_time.svg, gap.svg and, for each strategy, timeline-NAME.svg of the longest context's
/// first step. Errors: those of write_file().
Status draw_plots(const WhatifReport& report, const std::string& folder);

}  // namespace batchloom::cli
