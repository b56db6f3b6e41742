// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/balance.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace batchloom::planning {
namespace {

/// Places of `values`, by descending value; equal ones in order.
template <class Value>
std::vector<std::uint32_t> descending(std::size_t count, Value value) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater<>(), value);
  return order;
}

/// A bucket of a partial solution: its cost, and its items as a list through `next`.
struct PartialBucket {
  std::uint64_t cost = 0;
  std::uint32_t first = UINT32_MAX;
  std::uint32_t last = UINT32_MAX;
};

/// Buckets by descending cost.
struct PartialSolution {
  std::vector<PartialBucket> buckets;
  std::uint32_t number = 0;  ///< Breaks ties: the older one first.

  std::uint64_t spread() const { return buckets.front().cost - buckets.back().cost; }
};

struct LessSpread {
  bool operator()(const PartialSolution& a, const PartialSolution& b) const {
    return std::make_tuple(a.spread(), b.number) < std::make_tuple(b.spread(), a.number);
  }
};

/// The fullest of one with the emptiest of the other.
PartialSolution merge(PartialSolution a, const PartialSolution& b,
                      std::vector<std::uint32_t>& next) {
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    PartialBucket& into = a.buckets[i];
    const PartialBucket& from = b.buckets[b.buckets.size() - 1 - i];
    into.cost += from.cost;
    if (from.first == UINT32_MAX) continue;
    (into.first == UINT32_MAX ? into.first : next[into.last]) = from.first;
    into.last = from.last;
  }
  std::ranges::stable_sort(a.buckets, std::greater<>(), &PartialBucket::cost);
  return a;
}

std::vector<std::uint32_t> by_size(std::span<const SizedItem> items) {
  return descending(items.size(), [&](std::uint32_t i) { return items[i].size; });
}

std::optional<Buckets> fit_by_cost(std::span<const SizedItem> items, std::uint32_t bins,
                                   std::uint32_t capacity) {
  std::vector<std::uint64_t> sizes(bins, 0);
  std::vector<std::uint64_t> costs(bins, 0);
  Buckets buckets(items.size());
  for (const std::uint32_t i :
       descending(items.size(), [&](std::uint32_t item) { return items[item].cost; })) {
    std::uint32_t best = bins;
    for (std::uint32_t bin = 0; bin < bins; ++bin) {
      if (sizes[bin] + items[i].size > capacity) continue;
      if (best == bins || costs[bin] < costs[best]) best = bin;
    }
    if (best == bins) return std::nullopt;
    sizes[best] += items[i].size;
    costs[best] += items[i].cost;
    buckets[i] = best;
  }
  return buckets;
}

}  // namespace

Buckets balance_lpt(std::span<const std::uint64_t> costs, std::uint32_t buckets) {
  using Load = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) least.emplace(0, bucket);
  Buckets of(costs.size());
  for (const std::uint32_t i :
       descending(costs.size(), [&](std::uint32_t j) { return costs[j]; })) {
    const auto [load, bucket] = least.top();
    least.pop();
    of[i] = bucket;
    least.emplace(load + costs[i], bucket);
  }
  return of;
}

Buckets balance_karmarkar_karp(std::span<const std::uint64_t> costs, std::uint32_t buckets) {
  Buckets of(costs.size());
  if (costs.empty()) return of;
  std::vector<std::uint32_t> next(costs.size(), UINT32_MAX);
  std::priority_queue<PartialSolution, std::vector<PartialSolution>, LessSpread> solutions;
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < costs.size(); ++i) {
    PartialSolution solution{std::vector<PartialBucket>(buckets), number++};
    solution.buckets[0] = {costs[i], i, i};
    solutions.push(std::move(solution));
  }
  while (solutions.size() > 1) {
    PartialSolution first = solutions.top();
    solutions.pop();
    PartialSolution merged = merge(std::move(first), solutions.top(), next);
    solutions.pop();
    merged.number = number++;
    solutions.push(std::move(merged));
  }
  const std::vector<PartialBucket>& final = solutions.top().buckets;
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
    for (std::uint32_t i = final[bucket].first; i != UINT32_MAX; i = next[i]) of[i] = bucket;
  }
  return of;
}

std::optional<std::uint32_t> count_bins(std::span<const SizedItem> items, std::uint32_t capacity) {
  std::vector<std::uint64_t> sizes;
  for (const std::uint32_t i : by_size(items)) {
    if (items[i].size > capacity) return std::nullopt;
    std::size_t bin = 0;
    while (bin < sizes.size() && sizes[bin] + items[i].size > capacity) ++bin;
    if (bin == sizes.size()) sizes.push_back(0);
    sizes[bin] += items[i].size;
  }
  return static_cast<std::uint32_t>(sizes.size());
}

std::optional<Buckets> fit_within(std::span<const SizedItem> items, std::uint32_t bins,
                                  std::uint32_t capacity) {
  std::vector<std::uint64_t> sizes(bins, 0);
  Buckets buckets(items.size());
  for (const std::uint32_t i : by_size(items)) {
    std::uint32_t bin = 0;
    while (bin < bins && sizes[bin] + items[i].size > capacity) ++bin;
    if (bin == bins) return std::nullopt;
    sizes[bin] += items[i].size;
    buckets[i] = bin;
  }
  return buckets;
}

std::optional<Buckets> balance_within(std::span<const SizedItem> items, std::uint32_t bins,
                                      std::uint32_t capacity) {
  if (auto fitted = fit_by_cost(items, bins, capacity)) return fitted;
  return fit_within(items, bins, capacity);
}

double imbalance_of(std::span<const std::uint64_t> costs, const Buckets& of,
                    std::uint32_t buckets) {
  std::vector<std::uint64_t> sums(buckets, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) sums[of[i]] += costs[i];
  const std::uint64_t total = std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
  if (total == 0) return 1;
  return static_cast<double>(std::ranges::max(sums)) * buckets / static_cast<double>(total);
}

}  // namespace batchloom::planning
