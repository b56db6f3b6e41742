// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/source_profile.h"

#include <algorithm>
#include <utility>

#include "batchloom/control/slow_looks.h"

namespace batchloom::control {
namespace {

SampleCost per_sample(const OrderCost& cost) {
  const double samples = static_cast<double>(std::max<std::uint64_t>(cost.samples, 1));
  return {.samples = cost.samples,
          .thread_s = cost.thread_s / samples,
          .cpu_s = cost.cpu_s / samples,
          .tokens = static_cast<double>(cost.tokens) / samples,
          .bytes = static_cast<double>(cost.bytes) / samples};
}

/// The median of each figure by itself; of an even number the lower one.
SampleCost median_of(std::vector<SampleCost> costs) {
  const auto of = [&](double SampleCost::* figure) {
    const auto middle = costs.begin() + static_cast<std::ptrdiff_t>((costs.size() - 1) / 2);
    std::ranges::nth_element(costs, middle, {}, figure);
    return (*middle).*figure;
  };
  SampleCost median;
  for (const SampleCost& cost : costs) median.samples += cost.samples;
  median.thread_s = of(&SampleCost::thread_s);
  median.cpu_s = of(&SampleCost::cpu_s);
  median.tokens = of(&SampleCost::tokens);
  median.bytes = of(&SampleCost::bytes);
  return median;
}

void move_to(double& average, double seen) {
  average += SourceProfile::kAlpha * (seen - average);
}

}  // namespace

bool SourceProfile::wants(model::SourceId source) {
  const MutexLock lock(mutex_);
  Source& of = sources_[source.value];
  return !of.is_warm || of.orders++ % kMeasureEvery == 0;
}

void SourceProfile::add(model::SourceId source, const OrderCost& cost) {
  const SampleCost seen = per_sample(cost);
  const MutexLock lock(mutex_);
  Source& of = sources_[source.value];
  if (!of.is_warm) {
    of.first.push_back(seen);
    of.cost = median_of(of.first);
    of.is_warm = of.first.size() >= kFirstOrders && of.cost.samples >= kFirstSamples;
    if (of.is_warm) std::exchange(of.first, {});
    return;
  }
  of.cost.samples += seen.samples;
  move_to(of.cost.thread_s, seen.thread_s);
  move_to(of.cost.cpu_s, seen.cpu_s);
  move_to(of.cost.tokens, seen.tokens);
  move_to(of.cost.bytes, seen.bytes);
}

std::vector<SampleCost> SourceProfile::costs() const {
  const MutexLock lock(mutex_);
  std::vector<SampleCost> costs;
  costs.reserve(sources_.size());
  for (const Source& source : sources_) costs.push_back(source.cost);
  return costs;
}

Result<Fetched> ProfiledFetcher::fetch(const FetchOrder& order, FetchPlace& place,
                                       const CallOptions& call) {
  if (!profile_.wants(order.source)) return fetcher_.fetch(order, place, call);
  // What the looks at the thread take is in no time that waits for storage.
  const ThreadTimes before = times();
  const Time begin = runtime_.now();
  Result<Fetched> fetched = fetcher_.fetch(order, place, call);
  const double took = seconds_of(runtime_.now() - begin);
  const ThreadTimes had = times() - before;
  if (!fetched.is_ok() || fetched->block == nullptr || order.samples.empty()) return fetched;
  OrderCost cost{.samples = order.samples.size(), .bytes = fetched->block->size_bytes()};
  for (const model::SampleMeta& sample : order.samples) cost.tokens += sample.tokens;
  cost.thread_s = std::max(took - seconds_of(had.ready), 0.0);
  cost.cpu_s = times_ ? std::min(seconds_of(had.cpu), cost.thread_s) : cost.thread_s;
  profile_.add(order.source, cost);
  return fetched;
}

}  // namespace batchloom::control
