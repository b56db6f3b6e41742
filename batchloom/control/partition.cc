// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "batchloom/base/quantity.h"

namespace batchloom::control {
namespace {

using Demands = std::span<const SourceDemand>;

/// Of a step, over all sources.
double sum_of(Demands sources, double SourceDemand::* figure) {
  double sum = 0;
  for (const SourceDemand& source : sources) sum += source.samples * source.*figure;
  return sum;
}

model::SourceId most_of(Demands sources, double SourceDemand::* figure) {
  const auto most = std::ranges::max_element(
      sources, {}, [&](const SourceDemand& source) { return source.samples * source.*figure; });
  return model::SourceId(static_cast<std::uint32_t>(most - sources.begin()));
}

/// Of an order in a thread's hands: a sample at least, and no more than a step has of the source.
double order_bytes_of(const SourceDemand& source, const PartitionLimits& limits) {
  const double order = std::max(static_cast<double>(limits.order_bytes), source.bytes);
  return std::min(order, std::max(source.samples, 1.0) * source.bytes);
}

double largest_order(Demands sources, const PartitionLimits& limits) {
  double bytes = 0;
  for (const SourceDemand& source : sources) {
    if (source.samples > 0) bytes = std::max(bytes, order_bytes_of(source, limits));
  }
  return bytes;
}

/// `waiting`: threads that wait for storage in the mean.
Result<std::uint32_t> threads_most(Demands sources, const PartitionLimits& limits, double waiting) {
  const auto memory = static_cast<double>(limits.memory_bytes);
  for (const SourceDemand& source : sources) {
    if (source.samples <= 0 || source.bytes <= memory) continue;
    return Status::exhausted(fmt::format(
        "a sample takes {:.0f} bytes, and loaders may hold {}, half of limits.memory: with more of "
        "it, steps are loaded side by side",
        source.bytes, bytes_text(limits.memory_bytes)));
  }
  const std::uint32_t cores = std::max(limits.cores, 1U);
  const double most = static_cast<double>(cores) * std::max(limits.threads_per_core, 1U);
  double threads = std::min(most, cores + std::round(limits.headroom * waiting));
  const double order = largest_order(sources, limits);
  if (order > 0) threads = std::min(threads, std::floor(memory / order));
  return static_cast<std::uint32_t>(std::max(threads, 1.0));
}

/// Of the cores that threads could keep busy: where fewer are, some count as idle.
constexpr double kCoresBusy = 0.9;

/// A lane, and who shares it.
struct Lane {
  double busy = 0;
  std::vector<std::uint32_t> sources = {};
};

/// Lanes, of which there are no more than `most`: those of single sources by SourceId, then the one
/// that all others share.
std::vector<Lane> lanes_of(const std::vector<double>& busy, std::uint32_t most) {
  std::vector<std::uint32_t> order(busy.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::uint32_t i) { return busy[i]; });
  const auto own = static_cast<std::size_t>(
      std::ranges::count_if(busy, [](double threads) { return threads >= kOwnLane; }));
  const bool all_own = own == busy.size() && own <= most;
  const std::size_t alone = all_own ? own : std::min<std::size_t>(own, most - 1);
  std::vector<Lane> lanes(alone);
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(alone));
  for (std::size_t i = 0; i < alone; ++i) lanes[i] = {busy[order[i]], {order[i]}};
  if (all_own) return lanes;
  Lane& shared = lanes.emplace_back();
  for (std::size_t i = alone; i < order.size(); ++i) {
    shared.busy += busy[order[i]];
    shared.sources.push_back(order[i]);
  }
  return lanes;
}

/// Threads by lane, at most `most` together. Precondition: there are no more lanes than that.
std::vector<std::uint32_t> threads_of(const std::vector<Lane>& lanes, std::uint32_t most) {
  std::vector<std::uint32_t> threads;
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes) {
    const double wanted = std::clamp(std::ceil(lane.busy), 1.0, static_cast<double>(most));
    threads.push_back(std::bit_ceil(static_cast<std::uint32_t>(wanted)));
    sum += threads.back();
  }
  if (sum <= most) return threads;
  std::ranges::fill(threads, 1U);
  for (auto left = most - static_cast<std::uint32_t>(lanes.size()); left > 0; --left) {
    std::size_t busiest = 0;
    for (std::size_t i = 1; i < lanes.size(); ++i) {
      if (lanes[i].busy / threads[i] > lanes[busiest].busy / threads[busiest]) busiest = i;
    }
    ++threads[busiest];
  }
  return threads;
}

/// Whether cores idle that are busy otherwise, where all of `threads` have orders of this lane.
bool leaves_cores(const Lane& lane, Demands sources, std::uint32_t threads, std::uint32_t cores) {
  double thread_s = 0;
  double cpu_s = 0;
  for (const std::uint32_t i : lane.sources) {
    thread_s += sources[i].samples * sources[i].thread_s;
    cpu_s += sources[i].samples * sources[i].cpu_s;
  }
  return threads * cpu_s < kCoresBusy * std::min(threads, cores) * thread_s;
}

void foresee(Demands sources, const PartitionLimits& limits, std::optional<double> step_s,
             Partition& result) {
  const double by_cores = sum_of(sources, &SourceDemand::cpu_s) / std::max(limits.cores, 1U);
  const double by_threads = sum_of(sources, &SourceDemand::thread_s) / result.threads;
  result.step_s = std::max(by_cores, by_threads);
  // What a thread does on a core is part of both, and waiting for storage is hardly ever nothing.
  const bool is_waiting = by_threads > by_cores * 1.1;
  result.bound = is_waiting ? PartitionBound::kThreads : PartitionBound::kCores;
  if (step_s && result.step_s <= *step_s) result.bound = PartitionBound::kTrainer;
  if (result.step_s <= 0) return;
  result.bound_by = most_of(sources, is_waiting ? &SourceDemand::thread_s : &SourceDemand::cpu_s);
}

}  // namespace

std::string to_string(PartitionBound bound) {
  switch (bound) {
    case PartitionBound::kTrainer: return "trainer";
    case PartitionBound::kCores: return "cores";
    case PartitionBound::kThreads: return "threads";
  }
  return "";
}

Result<Partition> partition(Demands sources, const PartitionLimits& limits,
                            std::optional<double> step_s) {
  const double thread_s = sum_of(sources, &SourceDemand::thread_s);
  const double cpu_s = sum_of(sources, &SourceDemand::cpu_s);
  const std::uint32_t cores = std::max(limits.cores, 1U);
  // As little as nothing on cores, where all of it waits, would be infinitely many threads.
  const double fastest = std::max(cpu_s, thread_s * 1e-6) / cores;
  const double step = std::max(step_s.value_or(0), fastest);
  const auto threads_at = [&](double busy_s) { return step > 0 ? busy_s / step : 0; };
  BL_ASSIGN_OR_RETURN(const std::uint32_t most,
                      threads_most(sources, limits, threads_at(thread_s - cpu_s)));
  Partition result;
  for (const SourceDemand& source : sources) {
    result.busy.push_back(limits.headroom * threads_at(source.samples * source.thread_s));
  }
  const std::vector<Lane> lanes = lanes_of(result.busy, most);
  result.lanes.threads = threads_of(lanes, most);
  result.lanes.of_source.resize(sources.size());
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    for (const std::uint32_t source : lanes[lane].sources) result.lanes.of_source[source] = lane;
  }
  result.threads = std::accumulate(result.lanes.threads.begin(), result.lanes.threads.end(), 0U);
  for (const Lane& lane : lanes) {
    result.lanes.binds.push_back(leaves_cores(lane, sources, result.threads, cores));
  }
  result.orders_bytes =
      static_cast<std::uint64_t>(std::ceil(result.threads * largest_order(sources, limits)));
  foresee(sources, limits, step_s, result);
  return result;
}

}  // namespace batchloom::control
