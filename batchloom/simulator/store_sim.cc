// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/store_sim.h"

#include <algorithm>
#include <atomic>

#include "batchloom/base/hash.h"
#include "batchloom/base/mutex.h"

namespace batchloom::simulator {
namespace {

// Fills in `same_until_first_use`.
SimFailure compared(SimFailure failure, std::optional<store::Safeguard> broken) {
  if (!broken) return failure;
  const StoreRun whole = run_store_world({.seed = failure.seed,
                                          .broken = std::nullopt,
                                          .watched = broken,
                                          .without = failure.without});
  failure.same_until_first_use = whole.first_use == failure.run.first_use;
  return failure;
}

// Shared by the threads that run worlds.
class Campaign {
 public:
  Campaign(const SimOptions& options, const SimProgress& progress)
      : options_(options), progress_(progress), next_(options.first_seed) {}

  void work() {
    const std::uint64_t end = options_.first_seed + options_.seeds;
    for (;;) {
      const std::uint64_t seed = next_.fetch_add(1);
      if (seed >= end || seed > lowest_failure()) return;
      StoreRun run = run_store_world({.seed = seed,
                                      .broken = options_.broken,
                                      .watched = std::nullopt,
                                      .without = options_.without});
      add(seed, std::move(run));
    }
  }

  /// Once all work() has returned.
  SimSummary summary() {
    SimSummary summary;
    std::optional<StoreRun> failed;
    std::uint64_t failed_seed = 0;
    {
      const MutexLock lock(mutex_);
      summary = summary_;
      failed = failed_;
      failed_seed = failed_seed_;
    }
    if (failed) {
      SimFailure failure{
          .seed = failed_seed, .run = *std::move(failed), .without = options_.without};
      summary.failure = options_.make_small ? make_small(std::move(failure), options_.broken)
                                            : compared(std::move(failure), options_.broken);
    }
    return summary;
  }

 private:
  std::uint64_t lowest_failure() {
    const MutexLock lock(mutex_);
    return failed_seed_;
  }

  void add(std::uint64_t seed, StoreRun run) {
    std::uint64_t done = 0;
    {
      const MutexLock lock(mutex_);
      done = ++summary_.seeds;
      summary_.points += run.points;
      summary_.trace_hash += mix64(seed ^ run.trace_hash);
      for (const auto& [event, count] : run.events) summary_.events[event] += count;
      if (!run.violations.empty() && seed < failed_seed_) {
        failed_seed_ = seed;
        failed_ = std::move(run);
      }
    }
    if (progress_) progress_(done);
  }

  const SimOptions& options_;
  const SimProgress& progress_;
  std::atomic<std::uint64_t> next_;
  Mutex mutex_;
  SimSummary summary_ BL_GUARDED_BY(mutex_);
  std::uint64_t failed_seed_ BL_GUARDED_BY(mutex_) = UINT64_MAX;
  std::optional<StoreRun> failed_ BL_GUARDED_BY(mutex_);
};

// "I6" of "I6: ...".
std::string rule_of(const StoreRun& run) {
  return run.violations.front().substr(0, run.violations.front().find(':'));
}

bool breaks(const StoreRun& run, const std::string& rule) {
  return std::ranges::any_of(run.violations,
                             [&](const std::string& text) { return text.starts_with(rule + ":"); });
}

// Takes faults away from a failing seed as long as it breaks the same rule.
class Shrinker {
 public:
  Shrinker(std::optional<store::Safeguard> broken, std::string rule, SimFailure failure)
      : broken_(broken), rule_(std::move(rule)), failure_(std::move(failure)) {}

  const SimFailure& failure() const { return failure_; }

  /// Tries each group of so many faults once. True if any could go.
  bool pass(std::size_t group) {
    bool any = false;
    for (std::size_t begin = 0; begin < failure_.run.troubles.size();) {
      if (take_away(begin, group)) {
        any = true;
      } else {
        begin += group;
      }
    }
    return any;
  }

 private:
  bool take_away(std::size_t begin, std::size_t count) {
    std::vector<Trouble> fewer = failure_.without;
    const auto& troubles = failure_.run.troubles;
    const std::size_t end = std::min(begin + count, troubles.size());
    for (std::size_t i = begin; i < end; ++i) fewer.push_back(troubles[i]);
    StoreRun run = run_store_world(
        {.seed = failure_.seed, .broken = broken_, .watched = std::nullopt, .without = fewer});
    if (!breaks(run, rule_)) return false;
    failure_.run = std::move(run);
    failure_.without = std::move(fewer);
    return true;
  }

  const std::optional<store::Safeguard> broken_;
  const std::string rule_;
  SimFailure failure_;
};

}  // namespace

std::vector<std::string> SimSummary::never_happened() const {
  std::vector<std::string> never;
  for (const auto& [event, count] : events) {
    if (count == 0) never.push_back(event);
  }
  return never;
}

SimSummary run_store_sim(Runtime& runtime, const SimOptions& options, const SimProgress& progress) {
  Campaign campaign(options, progress);
  {
    std::vector<std::unique_ptr<Task>> tasks;
    for (unsigned i = 1; i < options.jobs; ++i) {
      tasks.push_back(
          runtime.spawn("worlds", [&campaign](const std::stop_token&) { campaign.work(); }));
    }
    campaign.work();
    for (const auto& task : tasks) task->join();
  }
  return campaign.summary();
}

SimFailure make_small(SimFailure failure, std::optional<store::Safeguard> broken) {
  const std::string rule = rule_of(failure.run);
  Shrinker shrinker(broken, rule, std::move(failure));
  // Groups of half, a quarter, ... of what is left; at last each by itself, until none can go.
  std::size_t group = std::max<std::size_t>(shrinker.failure().run.troubles.size() / 2, 1);
  for (; group > 1; group /= 2) shrinker.pass(group);
  while (shrinker.pass(1)) {
  }
  return compared(shrinker.failure(), broken);
}

}  // namespace batchloom::simulator
