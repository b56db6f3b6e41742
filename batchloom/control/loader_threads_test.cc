// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/loader_threads.h"

#include <gtest/gtest.h>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/construction/corpus_testing.h"
#include "batchloom/control/pipeline_run_testing.h"

namespace batchloom::control {
namespace {

using construction::Corpus;
using std::chrono::milliseconds;

constexpr Duration kSample = milliseconds(1);

/// Its time is what a test says: a simulated process's leaps to whoever waits longest.
class Clock final : public Runtime {
 public:
  explicit Clock(Runtime& process) : process_(process) {}

  Time now() override { return time; }
  Status sleep_until(const CallOptions& call) override { return process_.sleep_until(call); }
  std::unique_ptr<Task> spawn(std::string name,
                              std::function<void(std::stop_token)> body) override {
    return process_.spawn(std::move(name), std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return process_.make_event(); }
  std::uint64_t random() override { return process_.random(); }
  Status check(const CallOptions& call) override { return process_.check(call); }

  Time time{};

 private:
  Runtime& process_;
};

/// Somebody takes the steps of one source, whose samples take kSample each, on 4 cores.
struct Taken {
  std::uint32_t threads = 0;   ///< Of the loader, at the end; it begins with 1.
  std::size_t changed_at = 0;  ///< Steps until it had others.
};

enum class Pace : std::uint8_t {
  kAsLoaded,     ///< A step as soon as it is loaded: loaders are waited for.
  kOfOneThread,  ///< A step in the time that one thread takes for its samples; nobody waits.
};

Taken take_steps(Pace pace) {
  Corpus corpus({.seed = 3, .sources = 1, .records = 1'000});
  const auto graph = corpus.graph(planning::Balance::kNone);
  const auto steps = corpus.plan(planning::Balance::kNone, "dp=2", 60);
  std::size_t samples = 0;
  for (const planning::PlannedStep& step : steps) samples += step.members.size();
  const Duration of_one_thread = kSample * static_cast<std::int64_t>(samples / steps.size());
  Taken taken;
  SimWorld world(7);
  SimProcess& process = world.add_process("p");
  process.start("main", [&] {
    Clock watch(process);
    CorpusFetcher fetcher(corpus);
    fetcher.before = [&](const FetchOrder& order, const CallOptions&) {
      watch.time += kSample * std::ssize(order.samples);
      return Status::ok();
    };
    LoaderThreads threads(watch, fetcher, *graph.mix, corpus,
                          {.threads = 1, .scaling = {.limits = {.cores = 4}}});
    StepLoader loader(process, threads.fetcher(), {.workers = 1, .order_bytes = 1});
    for (const planning::PlannedStep& step : steps) {
      const Time begin = watch.time;
      loader.submit(step);
      EXPECT_TRUE(loader.next({}).is_ok());
      const Duration waited = watch.time - begin;
      if (pace == Pace::kOfOneThread) watch.time = begin + of_one_thread;
      threads.handed_on(step, pace == Pace::kAsLoaded ? waited : Duration(), loader);
      if (loader.workers() == 1) ++taken.changed_at;
    }
    taken.threads = loader.workers();
  });
  const Status ended = world.run();
  EXPECT_TRUE(ended.is_ok()) << ended.to_string();
  return taken;
}

TEST(LoaderThreads, WhereLoadersAreWaitedForTheyHaveAllCores) {
  const Taken taken = take_steps(Pace::kAsLoaded);
  EXPECT_EQ(taken.threads, 4U);
  EXPECT_LT(taken.changed_at, 20U);
}

TEST(LoaderThreads, AtATrainersPaceTheyHaveWhatThePaceAsksFor) {
  EXPECT_EQ(take_steps(Pace::kOfOneThread).threads, 2U) << "one busy thread, and headroom";
}

}  // namespace
}  // namespace batchloom::control
