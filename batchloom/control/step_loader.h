// SPDX-License-Identifier: Apache-2.0
// The payload of planned steps, brought by many threads and handed on in the steps' order.
//
//  1. A step is cut into orders: samples of one source, up to a number of bytes, so that a large
//     step of one source is brought by many threads too. Threads take orders by ascending step; of
//     steps behind the oldest, first those of sources that have not as many threads as their lane
//     has, if it binds (partition.h): so a source that waits for storage does not hold all threads
//     while others could use the cores. Nobody idles: where all lanes are full, the oldest order is
//     taken.
//  2. What is on its way or waits to be taken counts against one bound in bytes, from submit()
//     until next(). A step that is larger than the bound comes in alone.
//  3. Steps leave in the order in which they came, whole: with all their blocks, or with all
//     samples whose records turned out to be bad. So what a caller learns of a step does not depend
//     on threads or timing.
//  4. An error of an order is the error of its step; what comes behind it is still brought. What
//     storage refuses for now is tried again, a few times.
//  5. A sample that does not come is named, and in the end stops the run (slow_samples.h).
//  6. Threads may become more or fewer at any time. Who is to go brings the order that it has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/construction/monitor.h"
#include "batchloom/construction/sample_block.h"
#include "batchloom/control/partition.h"
#include "batchloom/control/slow_samples.h"
#include "batchloom/control/source_loads.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {

/// A record that a plan had counted on.
struct BadSample {
  model::SampleId sample;
  std::string message;  ///< Names shard, record and what is wrong.

  friend bool operator==(const BadSample&, const BadSample&) = default;
};

/// What came of an order: a block of all its samples, or those that are bad.
struct Fetched {
  construction::BlockPtr block;
  std::vector<BadSample> bad = {};
};

/// Reads samples. Thread-safe: many orders of one source may be brought at once.
class SampleFetcher {
 public:
  virtual ~SampleFetcher() = default;

  /// Blocks for as long as storage does, and notes in `place` how far it is. Errors are faults, not
  /// bad records (sources/faults.h).
  virtual Result<Fetched> fetch(const FetchOrder& order, FetchPlace& place,
                                const CallOptions& call) = 0;
};

/// What takes how much in a block.
struct BlockWidths {
  std::uint32_t token_bytes = 4;
  std::uint32_t patch_bytes = 0;
};

/// What a sample takes while it is loaded and waits to be taken.
std::uint64_t loaded_bytes(const model::SampleMeta& sample, const BlockWidths& widths);

struct StepLoaderOptions {
  std::uint32_t workers = 2;  ///< At least 1.
  /// Of all steps that are on their way or wait to be taken.
  std::uint64_t bytes_max = std::uint64_t{2} << 30;
  BlockWidths widths = {};
  /// Of an order. Smaller ones spread a step over more threads, and cost more of their turns.
  std::uint64_t order_bytes = std::uint64_t{1} << 20;
  /// Of an order that storage refuses for now (`unavailable`), with pauses that grow from 10 ms.
  std::uint32_t attempts = 5;
  SlowSampleOptions slow = {};
};

/// A step, and what came for it.
struct LoadedStep {
  planning::PlannedStep planned;
  std::vector<construction::BlockPtr> blocks;  ///< Of all samples, where none is bad.
  std::vector<BadSample> bad;                  ///< By id.
};

/// submit(), next(), clear() and resize() are one thread at a time.
class StepLoader {
 public:
  /// `fetcher` and `runtime` outlive it.
  StepLoader(Runtime& runtime, SampleFetcher& fetcher, const StepLoaderOptions& options);
  /// Stops the threads, and waits for the orders that they have.
  ~StepLoader();
  StepLoader(const StepLoader&) = delete;
  StepLoader& operator=(const StepLoader&) = delete;

  /// Whether submit() would take this step now.
  bool has_room(const planning::PlannedStep& step) const;
  /// Begins to bring a step. Precondition: has_room().
  void submit(planning::PlannedStep step);

  /// No step is on its way.
  bool empty() const;
  /// Steps submitted and not taken.
  std::size_t steps() const;
  /// What these may take in memory.
  std::uint64_t bytes() const;
  /// The source that the oldest step still waits for, where it waits.
  std::optional<model::SourceId> held_up_by() const;
  /// What loading has cost, by SourceId, up to the last source that was asked for.
  std::vector<SourceLoad> loads() const;

  /// The oldest step, waiting for all of it. Its error otherwise, and the step stays; `unavailable`
  /// also where a sample takes too long, naming it and its step, which may be a later one.
  /// Precondition: not empty().
  Result<LoadedStep> next(const CallOptions& call);

  /// Forgets all steps; orders that threads have come to nothing.
  void clear();

  /// From now on there are so many threads, at least 1, of which sources have shares. Does not
  /// block: those that are to go end when they next look for an order. Precondition: of the lanes,
  /// `threads` and `binds` have as many, and `of_source` no other.
  void resize(std::uint32_t workers, LoaderLanes lanes);
  /// That there are to be.
  std::uint32_t workers() const;

 private:
  struct PendingStep {
    explicit PendingStep(planning::PlannedStep step) : loaded{std::move(step), {}, {}} {}

    LoadedStep loaded;
    std::vector<FetchOrder> orders;  ///< Those not yet given out are at the end.
    std::size_t waiting = 0;         ///< Not given out.
    std::size_t open = 0;            ///< Not come back.
    std::vector<OrderOutPtr> out;    ///< Given out and not come back.
    std::uint64_t bytes = 0;
    Status failed;
  };
  /// Shared with the threads, which may come back after clear().
  using PendingPtr = std::shared_ptr<PendingStep>;
  struct State {
    std::vector<PendingPtr> steps;  ///< Oldest first.
    std::uint64_t bytes = 0;
    std::vector<OrderOutPtr> out;  ///< All that threads have, those of forgotten steps too.
    SourceLoads loads;
    LoaderLanes lanes;
    std::uint32_t wanted = 0;          ///< Threads.
    std::uint32_t live = 0;            ///< Threads that take orders.
    std::vector<std::uint64_t> ended;  ///< Threads to be joined.
  };
  struct Thread {
    std::uint64_t number = 0;
    std::unique_ptr<Task> task;
  };
  struct Turn {
    PendingPtr step;
    std::shared_ptr<OrderOut> out;
  };

  std::uint64_t bytes_of(const planning::PlannedStep& step) const;
  std::vector<FetchOrder> orders_of(const planning::PlannedStep& step) const;
  void spawn_threads(std::uint32_t count);
  void join_ended();
  void work(std::uint64_t number, const std::stop_token& stop);
  /// Nothing where this thread is to go.
  Result<std::optional<Turn>> next_order(std::uint64_t number, const CallOptions& call);
  static std::optional<Turn> take_order(State& state);
  void bring(const Turn& turn, const CallOptions& call);
  Result<Fetched> fetch(OrderOut& out, const CallOptions& call);
  Status wait_for_oldest(const CallOptions& call);
  Status watch_oldest(const CallOptions& call);
  static std::optional<model::SourceId> held_up_by(const State& state);
  static void deliver(const Turn& turn, Result<Fetched> fetched, State& state);

  Runtime& runtime_;
  SampleFetcher& fetcher_;
  const StepLoaderOptions options_;
  SlowSamples slow_;  ///< next()'s.
  construction::Monitor<State> state_;
  std::uint64_t threads_made_ = 0;
  std::vector<Thread> threads_;  // Last: they use all of the above.
};

}  // namespace batchloom::control
