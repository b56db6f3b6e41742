// SPDX-License-Identifier: Apache-2.0
// How many threads loaders take, and how many of them each source may have at once
// (docs/design/0012-partition.md). Pure functions.
//
//  1. A step takes n_s samples of source s, and one of them P_s seconds of a thread, of which C_s
//     on a core. Cores make no more steps than one in T = sum(n_s C_s) / cores; a trainer that
//     takes one in a longer time is served at its own pace.
//  2. So u_s = headroom n_s P_s / T threads are busy with s. Sources below kOwnLane share one lane;
//     every other has a lane of its own, as long as there are threads for all.
//  3. Threads that only wait for storage need no core: the limit is the number of cores, and one
//     more thread for each that waits in the mean, up to some times as many as cores, and to as
//     many as there are orders that fit into memory.
//  4. A lane has u threads, rounded up to 1, 2, 4, 8, ...: small drifts change nothing. Where these
//     are more than the limit, each lane has one, and one more goes to whoever has the most to do
//     for each of its threads, until the limit is used.
//  5. A lane binds where cores would idle if all threads had its orders. Others may have as many
//     as they like: the cores are busy, and the oldest orders first is the least in memory.
//
// Rules 2 and 4 are those of MegaScale-Data (arXiv 2504.09844) as we read them; 3 and 5 are ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"

namespace batchloom::control {

/// Busy threads below which a source has no lane of its own.
inline constexpr double kOwnLane = 0.25;

/// What steps ask of a source, and what a sample of it costs.
struct SourceDemand {
  double samples = 0;   ///< Of a step: n_s.
  double thread_s = 0;  ///< Of a sample: P_s.
  double cpu_s = 0;     ///< Of a sample, of P_s: C_s.
  double bytes = 0;     ///< Of a sample, in memory.
};

struct PartitionLimits {
  std::uint32_t cores = 1;
  /// More hide storage that is slower, and hold more memory.
  std::uint32_t threads_per_core = 4;
  /// Of all that loaders hold.
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  /// Of an order (StepLoaderOptions).
  std::uint64_t order_bytes = std::uint64_t{1} << 20;
  /// Threads over those that are busy in the mean: samples are not alike.
  double headroom = 1.25;
};

/// Who may take which orders. Sources with one number share a lane.
struct LoaderLanes {
  std::vector<std::uint32_t> of_source = {};  ///< By SourceId. Empty: nobody is limited.
  std::vector<std::uint32_t> threads = {};    ///< By lane; each at least 1.
  std::vector<bool> binds = {};               ///< By lane: whether it may have no more at once.

  friend bool operator==(const LoaderLanes&, const LoaderLanes&) = default;
};

/// What keeps loaders from being faster.
enum class PartitionBound : std::uint8_t {
  kTrainer,  ///< Nothing: they are as fast as steps are taken.
  kCores,
  kThreads,  ///< Of which there are no more, while they wait for storage.
};

struct Partition {
  std::uint32_t threads = 1;  ///< Of all lanes together.
  LoaderLanes lanes;
  std::vector<double> busy;  ///< By SourceId: u_s, threads.
  double step_s = 0;         ///< The shortest that these threads can make; 0: not known.
  PartitionBound bound = PartitionBound::kCores;
  /// The source that takes most of what bounds; absent where nothing is known.
  std::optional<model::SourceId> bound_by;
  std::uint64_t orders_bytes = 0;  ///< Of one order in each thread's hands, at most.

  friend bool operator==(const Partition&, const Partition&) = default;
};

/// "cores", as messages have it.
std::string to_string(PartitionBound bound);

/// `step_s`: what a step takes those who train; absent: as many steps as cores can make. A source
/// of which nothing is known costs nothing. `exhausted`, with the arithmetic, where a single sample
/// does not fit into the memory. Precondition: there is a source.
Result<Partition> partition(std::span<const SourceDemand> sources, const PartitionLimits& limits,
                            std::optional<double> step_s);

}  // namespace batchloom::control
