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
  /// Strategy by strategy as the report has them (simulator::Variant::strategies()). Absent where
  /// not every sample fits any more.
  std::optional<simulator::WhatIf> outcome;
};

/// The steps under one context.
struct ContextOutcome {
  std::uint32_t context_tokens = 0;
  std::uint64_t left_out = 0;  ///< Of a file's lengths: those above the context.
  std::uint64_t steps = 0;     ///< Fewer than wanted where a pipeline's sources end.
  simulator::WhatIf outcome;
  std::vector<VariantOutcome> variants;
};

struct WhatifReport {
  Whatif args;            ///< With what follows from the lengths filled in.
  std::string step_text;  ///< "32M tokens".
  simulator::Cluster cluster;
  simulator::WhatIfOptions options;  ///< Of which the context changes.
  std::vector<ContextOutcome> contexts;
};

/// Whether a strategy is replayed only since a paper has a figure of it: its own groups would
/// dwarf all others in plots.
bool only_beside(const Whatif& args, std::string_view strategy);

/// How many times as long the steps take with `slow` as with `fast`.
double speedup(const simulator::StrategyOutcome& slow, const simulator::StrategyOutcome& fast);

/// Everything, timelines included.
Fields whatif_fields(const WhatifReport& report);

/// Writes step_time.svg, gap.svg and, for each strategy, timeline-NAME.svg of the longest context's
/// first step. Errors: those of write_file().
Status draw_plots(const WhatifReport& report, const std::string& folder);

}  // namespace batchloom::cli
