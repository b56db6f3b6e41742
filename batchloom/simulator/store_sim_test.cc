// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/simulator/sim_seeds_testing.h"

namespace batchloom::simulator {
namespace {

using store::Safeguard;
using testing::ElementsAre;
using testing::IsEmpty;

SimSummary run(const SimOptions& options, const SimProgress& progress = nullptr) {
  return run_store_sim(*make_real_runtime(), options, progress);
}

SimOptions seeds(std::uint64_t first, std::uint64_t count, unsigned jobs = 1) {
  SimOptions options;
  options.first_seed = first;
  options.seeds = count;
  options.jobs = jobs;
  return options;
}

/// With a safeguard that takes a few faults to show.
SimOptions broken(unsigned jobs = 1, std::uint64_t first = 0) {
  SimOptions options = seeds(first, 2000, jobs);
  options.broken = Safeguard::kFloorCheck;
  return options;
}

/// "I9: " for a run whose first complaint is about I9.
std::string rule_of(const StoreRun& run) {
  const std::string& text = run.violations.at(0);
  return text.substr(0, text.find(' ') + 1);
}

bool breaks(const StoreRun& run, const std::string& rule) {
  return std::ranges::any_of(run.violations,
                             [&](const std::string& text) { return text.starts_with(rule); });
}

TEST(StoreSim, TheSummaryDoesNotDependOnJobs) {
  const SimSummary one = run(seeds(0, 30, 1));
  const SimSummary three = run(seeds(0, 30, 3));
  EXPECT_EQ(one.seeds, 30U);
  EXPECT_EQ(one.seeds, three.seeds);
  EXPECT_EQ(one.points, three.points);
  EXPECT_EQ(one.events, three.events);
  EXPECT_EQ(one.trace_hash, three.trace_hash);
  EXPECT_FALSE(one.failure);
  EXPECT_FALSE(three.failure);
}

TEST(StoreSim, TheSummaryIsTheSumOfItsSeeds) {
  const SimSummary summary = run(seeds(5, 4));
  std::uint64_t points = 0;
  std::uint64_t trace_hash = 0;
  std::map<std::string, std::uint64_t> events;
  for (std::uint64_t seed = 5; seed < 9; ++seed) {
    const StoreRun one =
        run_store_world({.seed = seed, .broken = {}, .watched = {}, .without = {}});
    points += one.points;
    trace_hash += mix64(seed ^ one.trace_hash);
    for (const auto& [event, count] : one.events) events[event] += count;
  }
  EXPECT_EQ(summary.seeds, 4U);
  EXPECT_EQ(summary.points, points);
  EXPECT_EQ(summary.trace_hash, trace_hash);
  EXPECT_EQ(summary.events, events);
  EXPECT_NE(summary.trace_hash, run(seeds(6, 4)).trace_hash);
}

TEST(StoreSim, ProgressCountsSeeds) {
  std::vector<std::uint64_t> told;
  run(seeds(0, 3), [&](std::uint64_t done) { told.push_back(done); });
  EXPECT_THAT(told, ElementsAre(1, 2, 3));
}

TEST(StoreSim, FaultsAreTakenAwayFromAllSeeds) {
  SimOptions options = seeds(0, 5);
  options.without = {{.kind = Trouble::Kind::kCrash, .ordinal = 0, .call = {}}};
  const SimSummary summary = run(options);
  const SimSummary all = run(seeds(0, 5));
  EXPECT_LT(summary.events.at("crash"), all.events.at("crash"));
}

// With a broken safeguard. Not in sanitizers: hundreds of worlds each.

TEST(BrokenSafeguardSearch, ReportsTheLowestFailingSeedWhateverTheJobs) {
  SimOptions options = broken(1);
  options.make_small = false;
  const SimSummary one = run(options);
  options.jobs = 3;
  const SimSummary three = run(options);
  ASSERT_TRUE(one.failure);
  ASSERT_TRUE(three.failure);
  EXPECT_EQ(one.seeds, one.failure->seed + 1) << "it ends after the first failing seed";
  EXPECT_EQ(one.failure->seed, three.failure->seed);
  EXPECT_EQ(one.failure->without, three.failure->without);
  EXPECT_EQ(one.failure->run.trace_hash, three.failure->run.trace_hash);
}

TEST(BrokenSafeguardSearch, AFailureIsMadeSmallAndCanBeReplayed) {
  const SimFailure failure = run(broken(1, 100)).failure.value();
  const StoreRun before = run_store_world(
      {.seed = failure.seed, .broken = Safeguard::kFloorCheck, .watched = {}, .without = {}});
  EXPECT_LT(failure.run.troubles.size(), before.troubles.size() / 2);
  EXPECT_FALSE(failure.run.troubles.empty());
  EXPECT_TRUE(breaks(failure.run, rule_of(before))) << "it is still the same failure";

  // As printed for the command line.
  const auto without = parse_troubles(to_string(failure.without));
  ASSERT_TRUE(without.is_ok()) << without.status().to_string();
  const StoreRun again = run_store_world(
      {.seed = failure.seed, .broken = Safeguard::kFloorCheck, .watched = {}, .without = *without});
  EXPECT_EQ(again.trace_hash, failure.run.trace_hash);
  EXPECT_EQ(again.violations, failure.run.violations);
  EXPECT_EQ(again.troubles, failure.run.troubles);
}

TEST(BrokenSafeguardSearch, NoFaultOfASmallFailureCanBeTakenAwaySingly) {
  for (const std::uint64_t first : {100U, 150U}) {
    const SimFailure failure = run(broken(2, first)).failure.value();
    for (const Trouble& trouble : failure.run.troubles) {
      std::vector<Trouble> without = failure.without;
      without.push_back(trouble);
      const StoreRun fewer = run_store_world({.seed = failure.seed,
                                              .broken = Safeguard::kFloorCheck,
                                              .watched = {},
                                              .without = without});
      EXPECT_FALSE(breaks(fewer, rule_of(failure.run))) << to_string({trouble}) << " is not needed";
    }
  }
}

TEST(BrokenSafeguardSearch, AFailureThatNeedsNoFaultKeepsNone) {
  SimOptions options = seeds(13, 1);
  options.broken = Safeguard::kDropRule;
  const SimFailure failure = run(options).failure.value();
  EXPECT_THAT(failure.run.troubles, IsEmpty());
  EXPECT_EQ(failure.same_until_first_use, true);
}

TEST(SimSummary, NamesWhatNeverHappened) {
  SimSummary summary;
  EXPECT_THAT(summary.never_happened(), IsEmpty());
  summary.events = {{"commit", 3}, {"fence", 0}, {"rival", 1}, {"unknown", 0}};
  EXPECT_THAT(summary.never_happened(), ElementsAre("fence", "unknown"));
}

}  // namespace
}  // namespace batchloom::simulator
