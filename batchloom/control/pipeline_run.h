// SPDX-License-Identifier: Apache-2.0
// A pipeline at work: planned steps become committed batches, in order.
//
//            plan            load              build, upload         commit
//   state ---------> steps ---------> blocks ------------------> -----------> stream
//          one thread       loaders           constructors        one thread
//
//  1. One thread, the caller's, plans ahead as far as the lead (lead_gate.h) and the loaders'
//     memory allow, and hands loaded steps to the constructors in their order.
//  2. The state after a step is committed with it, and nothing else is durable. What was planned,
//     loaded or built, and not committed, is made again by a successor, to the same bytes.
//  3. Where a record of a step is bad though planning counted on it, it is struck out, everything
//     planned from that step on is forgotten, and planning goes on from the state before it. Only
//     content decides that, so every run does the same.
//  4. A stop ends planning and loading; what the constructors have is committed.
//  5. Loaders get more or fewer threads as steps ask for them, where that is left to the run
//     (loader_scaler.h). Steps are the same with any.
//
// Bounds, in bytes: what loaders bring (StepLoaderOptions::bytes_max), and what constructors have
// (ConstructorPoolOptions::bytes_max).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/construction/constructor_pool.h"
#include "batchloom/control/lead_gate.h"
#include "batchloom/control/loader_scaler.h"
#include "batchloom/control/pipeline_state.h"
#include "batchloom/control/retain_gate.h"
#include "batchloom/control/source_progress.h"
#include "batchloom/control/step_loader.h"
#include "batchloom/control/struck_records.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::control {

/// Who does what. All outlive the run.
struct PipelineRoles {
  const store::Stream& stream;
  store::ProducerSession& session;
  planning::Metadata& metadata;
  SampleFetcher& fetcher;
};

struct PipelineRunOptions {
  planning::GraphSpec graph;
  model::Topology topology;
  construction::ObjectOptions objects;
  /// Of the whole stream. Absent: until the sources stop.
  std::optional<std::uint64_t> steps = {};
  LeadGateOptions lead = {};  ///< Its next_step is the stream's.
  /// Of batch objects that the stream may hold (retain_gate.h); absent: no bound.
  std::optional<std::uint64_t> retain_max_bytes = {};
  StepLoaderOptions loaders = {};
  /// How loaders' threads follow what steps ask for; absent: there are always loaders.workers.
  std::optional<LoaderScalerOptions> scaling = {};
  /// Of a thread of loaders, with scaling; empty: its time counts as time on a core.
  ReadThreadTimes thread_times = {};
  /// More hide slow uploads behind each other.
  std::uint32_t constructors = 2;
  construction::ConstructorPoolOptions pool = {};
  /// Bad records that one source may have; one more ends the run.
  std::uint64_t bad_records = 100;
  /// By SourceId: those that planning never draws, because indexes say that they are bad. They
  /// count, too. Sources beyond the last one here have none.
  std::vector<std::uint64_t> indexed_bad_records = {};
  /// How long a stop waits for what constructors have.
  Duration stop_within = std::chrono::seconds(20);
};

/// What planning waits for.
enum class WaitsFor : std::uint8_t {
  kNothing,
  kConsumer,      ///< That somebody reads: the lead is used up.
  kRoom,          ///< That steps are trimmed: the stream holds as much as it may.
  kSources,       ///< That loaders bring what was planned.
  kConstructors,  ///< That they take a step, or finish what they have: the store may be slow.
};
inline constexpr std::size_t kWaitsForValues = 5;

constexpr std::size_t index_of(WaitsFor what) {
  return static_cast<std::size_t>(what);
}

/// How far a run is. Of this run, but for the steps.
struct PipelineProgress {
  model::Step next_step;  ///< Of the stream: below it, steps are committed.
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;         ///< Of batch objects.
  std::uint64_t struck = 0;        ///< Records struck out in the life of the stream.
  std::uint64_t memory_bytes = 0;  ///< What loaders and constructors hold now.
  std::uint32_t loader_threads = 0;
  double imbalance_before = 1;  ///< Means over steps: planning::PlanReport.
  double imbalance_after = 1;
  std::uint64_t lead = 0;  ///< Steps ahead of the slowest consumer, when last looked for.
  WaitsFor waits_for = WaitsFor::kNothing;
  std::optional<model::SourceId> held_up_by = {};  ///< The source that loading waits for.
  /// How long planning waited for what, by index_of(WaitsFor); with kNothing, how long for nothing.
  std::array<Duration, kWaitsForValues> waited = {};
  std::vector<SourceProgress> sources = {};  ///< By SourceId.
};

/// How a run ended.
enum class RunEnd : std::uint8_t {
  kStopped,      ///< By the stop token, at the end of a step.
  kAllSteps,     ///< The stream has as many steps as it shall have.
  kSourcesStop,  ///< A source stopped the stream.
};

/// run() once, by its owner's thread; progress() is thread-safe.
class PipelineRun {
 public:
  /// Goes on after `state`, which the session's last batch was committed with.
  PipelineRun(const PipelineRoles& roles, PipelineRunOptions options, PipelineState state);
  ~PipelineRun();
  PipelineRun(const PipelineRun&) = delete;
  PipelineRun& operator=(const PipelineRun&) = delete;

  /// Until one of RunEnd, and all that was handed to constructors is committed. Errors, naming the
  /// step: those of planning, of sources, of building, and of the store; `fenced` where a newer
  /// session exists; `exhausted` where a source has more bad records than it may have.
  Result<RunEnd> run(const std::stop_token& stop);

  PipelineProgress progress() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::control
