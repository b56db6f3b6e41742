// SPDX-License-Identifier: Apache-2.0
// When loaders get other threads while they run, and how many (docs/design/0012-partition.md).
//
//  1. It is asked once for each step, when the step is handed on. What a step takes, and how many
//     samples it has of each source, are moving averages.
//  2. A source's demand is the larger of its average and of what the weights' schedules say of any
//     of the next steps. So threads are there before a source grows.
//  3. The load is the busy threads that follow, over those that there are. Above up_load for
//     up_after steps, or where loading was waited for, threads grow to what partition() says; below
//     down_load for down_after steps they shrink to it. After a change it waits for a while. Lanes
//     follow also where the threads stay.
//  4. Who waits for loaders goes at their pace, so that says nothing of the pace that is wanted:
//     then as many threads are taken as cores can use.
//  5. What sources cost at first is not known: the threads there are go on until each source that
//     was drawn is measured.
//
// All of this decides who brings what when, and nothing of what is brought. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/control/partition.h"
#include "batchloom/control/source_profile.h"
#include "batchloom/planning/graph_spec.h"
#include "batchloom/planning/mixture_state.h"

namespace batchloom::control {

struct LoaderScalerOptions {
  PartitionLimits limits = {};
  /// Steps ahead whose weights count: as many as may be on their way, and 20 more.
  std::uint64_t horizon_steps = 84;
  double up_load = 0.85;
  double down_load = 0.40;
  std::uint32_t up_after = 10;     ///< Steps in a row.
  std::uint32_t down_after = 200;  ///< Steps in a row.
  std::uint32_t cool_down = 50;    ///< Steps after a change.
  /// Of its time that a step may be waited for before loading counts as too slow.
  double waited_most = 0.05;
  double alpha = 0.05;  ///< Of moving averages, by step.
};

/// A step that was handed on.
struct StepSeen {
  model::Step step;
  std::span<const model::SampleMeta> members;
  Duration took{0};    ///< Since the step before was handed on, or since loading began.
  Duration waited{0};  ///< Of that, for loaders, while there was too little ahead of consumers.
};

/// Whether consumers notice how long loading takes, and `waited` counts: too little is ahead of
/// them. Where half of the lead or more is loaded, each step is waited for because it was only just
/// asked for. `steps`: with the loaders; `lead`: absent without a bound.
constexpr bool loaders_are_behind(std::uint64_t steps, std::optional<std::uint64_t> lead) {
  return !lead || 2 * steps > *lead;
}

struct ScaleChange {
  Partition partition;
  std::string why;
};

class LoaderScaler {
 public:
  /// `mix` as mix_of_records() has it. It begins with `threads`, and without lanes.
  LoaderScaler(planning::MixSpec mix, std::uint32_t threads, const LoaderScalerOptions& options);

  /// Another partition, where there is to be one. `states` are those after the step.
  std::optional<ScaleChange> after(const StepSeen& seen, std::span<const SampleCost> costs,
                                   std::span<const planning::SourceState> states);

  std::uint32_t threads() const { return threads_; }
  /// Busy threads over those that there are, as last reckoned.
  double load() const { return load_; }

 private:
  void average(const StepSeen& seen);
  bool all_measured(std::span<const SampleCost> costs) const;
  std::vector<SourceDemand> demands(std::span<const SampleCost> costs) const;
  std::optional<ScaleChange> decide(std::span<const SourceDemand> wanted);
  std::optional<ScaleChange> change(const Partition& to, std::string why);
  std::string why_up(std::span<const SourceDemand> demands) const;

  const planning::MixSpec mix_;
  const LoaderScalerOptions options_;
  std::uint32_t threads_;
  LoaderLanes lanes_;
  std::vector<double> samples_;  ///< Moving averages, of a step.
  std::vector<double> ahead_;    ///< What schedules say of the steps to come.
  std::uint64_t steps_ = 0;      ///< Seen.
  double step_s_ = 0;            ///< A moving average.
  double load_ = 0;
  bool starved_ = false;            ///< The last step was waited for.
  std::uint32_t hot_ = 0;           ///< Steps in a row.
  std::uint32_t cold_ = 0;          ///< Steps in a row.
  std::uint32_t since_look_ = 0;    ///< Steps since partition() was last asked.
  std::uint32_t since_change_ = 0;  ///< Steps.
  bool is_divided_ = false;
  bool is_ahead_known_ = false;
};

}  // namespace batchloom::control
