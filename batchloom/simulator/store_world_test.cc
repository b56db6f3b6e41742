// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "batchloom/base/real_runtime.h"
#include "batchloom/simulator/sim_seeds_testing.h"
#include "batchloom/simulator/store_sim.h"

namespace batchloom::simulator {
namespace {

using store::Safeguard;
using testing::IsEmpty;

constexpr std::uint64_t kFewSeeds = 8;

StoreRun run_seed(std::uint64_t seed) {
  return run_store_world({.seed = seed, .broken = {}, .watched = {}, .without = {}});
}

void expect_same(const StoreRun& one, const StoreRun& other) {
  EXPECT_EQ(one.trace_hash, other.trace_hash);
  EXPECT_EQ(one.points, other.points);
  EXPECT_EQ(one.events, other.events);
  EXPECT_EQ(one.violations, other.violations);
  EXPECT_EQ(one.troubles, other.troubles);
}

TEST(StoreWorld, OneSeedIsOneRun) {
  for (std::uint64_t seed = 0; seed < kFewSeeds; ++seed)
    expect_same(run_seed(seed), run_seed(seed));
}

TEST(StoreWorld, TwoSeedsAreTwoRuns) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 0; seed < kFewSeeds; ++seed) hashes.insert(run_seed(seed).trace_hash);
  EXPECT_EQ(hashes.size(), kFewSeeds);
}

/// What a run of `seed` in another process ends with: trace hash and picks.
std::array<std::uint64_t, 2> run_in_child(std::uint64_t seed) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const StoreRun run = run_seed(seed);
    const std::array<std::uint64_t, 2> result = {run.trace_hash, run.points};
    _exit(write(ends[1], result.data(), sizeof(result)) == sizeof(result) ? 0 : 1);
  }
  close(ends[1]);
  std::array<std::uint64_t, 2> result = {};
  EXPECT_EQ(read(ends[0], result.data(), sizeof(result)), ssize_t{sizeof(result)});
  close(ends[0]);
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return result;
}

TEST(StoreWorld, AnotherProcessHasTheSameRun) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto theirs = run_in_child(seed);
    const StoreRun ours = run_seed(seed);
    EXPECT_EQ(theirs[0], ours.trace_hash);
    EXPECT_EQ(theirs[1], ours.points);
  }
}

TEST(StoreWorld, NoSeedBreaksARule) {
  const auto runtime = make_real_runtime();
  SimOptions options;
  options.seeds = sim_seeds();
  options.jobs = 2;
  const SimSummary summary = run_store_sim(*runtime, options);
  if (summary.failure) {
    ADD_FAILURE() << "batchloom sim store --seeds=1 --first-seed=" << summary.failure->seed << ": "
                  << summary.failure->run.violations.at(0);
  }
  EXPECT_EQ(summary.seeds, options.seeds);
  EXPECT_GE(summary.points / summary.seeds, 2000U);
  EXPECT_TRUE(options.seeds < 100 || summary.never_happened().empty())
      << summary.never_happened().front();
}

TEST(StoreWorld, FaultsThatAreTakenAwayDoNotHappen) {
  for (std::uint64_t seed = 0; seed < kFewSeeds; ++seed) {
    const StoreRun all = run_seed(seed);
    const StoreRun rest =
        run_store_world({.seed = seed, .broken = {}, .watched = {}, .without = all.troubles});
    EXPECT_THAT(rest.violations, IsEmpty());
    for (const Trouble& trouble : all.troubles)
      EXPECT_FALSE(std::ranges::count(rest.troubles, trouble)) << to_string({trouble});
  }
}

TEST(StoreWorld, EveryEventHasARow) {
  const auto names = [](std::uint64_t seed) {
    std::set<std::string> all;
    for (const auto& [event, count] : run_seed(seed).events) all.insert(event);
    return all;
  };
  for (std::uint64_t seed = 1; seed < kFewSeeds; ++seed) EXPECT_EQ(names(seed), names(0));
  for (const char* chaos : {"crash", "rival", "suspension"}) EXPECT_TRUE(names(0).contains(chaos));
}

TEST(StoreWorld, FaultsComeInEveryKind) {
  std::set<Trouble::Kind> kinds;
  for (std::uint64_t seed = 0; seed < kFewSeeds; ++seed) {
    for (const Trouble& trouble : run_seed(seed).troubles) kinds.insert(trouble.kind);
  }
  EXPECT_EQ(kinds.size(), 4U);
}

/// For each safeguard.
class BrokenSafeguardTest : public testing::TestWithParam<Safeguard> {};

TEST_P(BrokenSafeguardTest, IsCaught) {
  const auto runtime = make_real_runtime();
  SimOptions options;
  options.seeds = 2000;
  options.broken = GetParam();
  options.jobs = 2;
  options.make_small = false;
  const SimSummary summary = run_store_sim(*runtime, options);
  ASSERT_TRUE(summary.failure);
  const SimFailure& failure = *summary.failure;
  EXPECT_FALSE(failure.run.violations.empty());
  EXPECT_EQ(failure.same_until_first_use, true);

  // Unbroken, the same seed breaks no rule, and nothing differs until the safeguard is used first.
  const StoreRun whole = run_store_world({.seed = failure.seed,
                                          .broken = std::nullopt,
                                          .watched = GetParam(),
                                          .without = failure.without});
  EXPECT_THAT(whole.violations, IsEmpty());
  ASSERT_TRUE(whole.first_use);
  EXPECT_EQ(whole.first_use, failure.run.first_use);
  EXPECT_GT(whole.first_use->points, 0U);
  EXPECT_NE(whole.trace_hash, failure.run.trace_hash);
}

std::string test_name(const testing::TestParamInfo<Safeguard>& safeguard) {
  std::string name(store::to_string(safeguard.param));
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, BrokenSafeguardTest, testing::ValuesIn(store::kAllSafeguards),
                         test_name);

TEST(StoreWorld, WatchingASafeguardChangesNothing) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const StoreRun watched = run_store_world(
        {.seed = seed, .broken = {}, .watched = Safeguard::kListBeforeHead, .without = {}});
    expect_same(watched, run_seed(seed));
    EXPECT_TRUE(watched.first_use);
    EXPECT_FALSE(run_seed(seed).first_use);
  }
}

TEST(StoreScenario, IsAFunctionOfItsSeedAndReachesAllItsSizes) {
  std::set<std::size_t> tails, arities, packs, producers, trainers;
  std::set<std::uint64_t> kept;
  std::set<std::uint32_t> ranks, consumers, trained_ranks;
  std::set<bool> faults, crashes, ordered, operations;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const StoreScenario scenario = draw_store_scenario(seed);
    EXPECT_EQ(scenario.objects, draw_store_scenario(seed).objects);
    tails.insert(scenario.limits.tail_entries);
    arities.insert(scenario.limits.arity);
    kept.insert(scenario.limits.slots_kept);
    producers.insert(scenario.sources.size());
    for (const SourceShape& source : scenario.sources) packs.insert(source.steps_per_object);
    ranks.insert(scenario.ranks);
    trainers.insert(scenario.trainers.size());
    for (const TrainerShape& trainer : scenario.trainers) {
      consumers.insert(trainer.consumers);
      trained_ranks.insert(trainer.ranks);
      // Every step is laid out for each of its consumers.
      const std::uint32_t stored = std::min(scenario.ranks, scenario.other_ranks);
      EXPECT_LE(trainer.consumers, trainer.ranks == 0 ? stored : trainer.ranks);
    }
    faults.insert(!scenario.fault_rates.empty());
    crashes.insert(scenario.crashes > 0);
    ordered.insert(scenario.ordered);
    operations.insert(scenario.operations > 0);
  }
  EXPECT_THAT(tails, testing::ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(arities, testing::ElementsAre(2, 3, 4));
  EXPECT_THAT(kept, testing::ElementsAre(2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(packs, testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(producers, testing::ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ranks, testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(trainers, testing::ElementsAre(1, 2));
  EXPECT_THAT(consumers, testing::ElementsAre(1, 2));
  EXPECT_THAT(trained_ranks, testing::ElementsAre(0, 1, 2, 3));
  for (const auto& both : {faults, crashes, ordered, operations}) EXPECT_EQ(both.size(), 2U);
}

}  // namespace
}  // namespace batchloom::simulator
