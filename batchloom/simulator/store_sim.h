// SPDX-License-Identifier: Apache-2.0
// Many seeds of StoreWorld: how often everything happened, and the first seed that broke a rule,
// made small.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/simulator/store_world.h"

namespace batchloom::simulator {

struct SimOptions {
  std::uint64_t first_seed = 0;
  std::uint64_t seeds = 1000;
  std::optional<store::Safeguard> broken;
  unsigned jobs = 1;       ///< Worlds that run at the same time.
  bool make_small = true;  ///< Take faults away from a failure; costs hundreds of runs.
  std::vector<Trouble>
      without;  ///< Faults that do not happen: how a failure that was made small is replayed.
};

/// A seed that broke a rule; made small, with as few of its faults as still break one.
struct SimFailure {
  std::uint64_t seed = 0;
  StoreRun run;                  ///< With the faults that are left.
  std::vector<Trouble> without;  ///< What was taken away.
  /// With a broken safeguard: whether the run is the same as an unbroken one until the safeguard is
  /// first used.
  std::optional<bool> same_until_first_use = std::nullopt;
};

struct SimSummary {
  std::uint64_t seeds = 0;  ///< Run to their end.
  std::uint64_t points = 0;
  std::map<std::string, std::uint64_t> events;
  std::uint64_t trace_hash = 0;  ///< Of all seeds together; independent of `jobs`.
  std::optional<SimFailure>
      failure;  ///< Of the lowest seed found failing; seeds above it may not have been run.

  /// Events of which a long run must have seen some, and this one has not.
  std::vector<std::string> never_happened() const;
};

/// Told how many seeds are done, after each; by any of the threads that run them.
using SimProgress = std::function<void(std::uint64_t seeds_done)>;

/// Runs the seeds on `jobs` threads of `runtime`, ends after the first failing one, and makes that
/// failure small.
SimSummary run_store_sim(Runtime& runtime, const SimOptions& options,
                         const SimProgress& progress = nullptr);

/// Takes faults away, one by one and first in larger groups, as long as the seed still breaks a
/// rule.
SimFailure make_small(SimFailure failure, std::optional<store::Safeguard> broken);

/// "crash:0,put:17": how troubles are spelled on the command line.
std::string to_string(const std::vector<Trouble>& troubles);
/// `invalid` names the part that is not a trouble.
Result<std::vector<Trouble>> parse_troubles(std::string_view text);

}  // namespace batchloom::simulator
