// SPDX-License-Identifier: Apache-2.0
// `batchloom sim store`
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "batchloom/base/log.h"
#include "batchloom/simulator/store_sim.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

/// A run of so many seeds, with nothing taken away, must have seen everything that can happen:
/// otherwise the simulation does not test what it says it does.
constexpr std::uint64_t kSeedsThatSeeAll = 1000;

std::string replay_command(const simulator::SimFailure& failure,
                           const simulator::SimOptions& options) {
  std::string command = fmt::format("batchloom sim store --seed={}", failure.seed);
  if (options.broken) command += fmt::format(" --break={}", to_string(*options.broken));
  if (!failure.without.empty()) command += " --without=" + to_string(failure.without);
  return command;
}

/// Of all seeds, or of the one that failed: how many others had run by then depends on timing.
std::uint64_t trace_hash_of(const simulator::SimSummary& summary) {
  return summary.failure ? summary.failure->run.trace_hash : summary.trace_hash;
}

Fields describe(const simulator::SimSummary& summary, const simulator::SimOptions& options) {
  Fields events;
  for (const auto& [event, count] : summary.events) events.add(event, count);
  Fields fields;
  fields.add("seeds", summary.seeds)
      .add("points", summary.points)
      .add("trace_hash", fmt::format("{:016x}", trace_hash_of(summary)))
      .add("events", events);
  if (!summary.failure) return fields;
  const simulator::SimFailure& failure = *summary.failure;
  fields.add("failed_seed", failure.seed);
  fields.add("violations", std::span<const std::string>(failure.run.violations));
  fields.add("faults", to_string(failure.run.troubles));
  if (failure.same_until_first_use) {
    fields.add("same_until_first_use", *failure.same_until_first_use);
  }
  fields.add("replay", replay_command(failure, options));
  return fields;
}

Status verdict(const simulator::SimSummary& summary, const simulator::SimOptions& options) {
  if (summary.failure) {
    return Status::internal(fmt::format("seed {} breaks a rule: {}", summary.failure->seed,
                                        summary.failure->run.violations.front()));
  }
  const std::vector<std::string> never = summary.never_happened();
  const bool must_see_all =
      options.seeds >= kSeedsThatSeeAll && !options.broken && options.without.empty();
  if (!must_see_all || never.empty()) return Status::ok();
  return Status::internal(
      fmt::format("{} seeds without: {}", summary.seeds, fmt::join(never, ", ")));
}

}  // namespace

Status run(const SimStore& args, Runtime& runtime) {
  const simulator::SimOptions& options = args.options;
  // Simulated processes meet faults all the time; what they have to say of them is of no interest.
  set_log_level(LogLevel::kError);
  const std::uint64_t stride = std::max<std::uint64_t>(options.seeds / 10, kSeedsThatSeeAll);
  const simulator::SimSummary summary = run_store_sim(runtime, options, [&](std::uint64_t done) {
    if (done % stride == 0) fmt::print(stderr, "{} of {} seeds\n", done, options.seeds);
  });
  print_result(describe(summary, options), args.json);
  return verdict(summary, options);
}

}  // namespace batchloom::cli
