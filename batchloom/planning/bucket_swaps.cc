// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/bucket_swaps.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace batchloom::planning {
namespace {

/// An item leaves the fullest bucket, and perhaps another one comes for it.
struct Exchange {
  std::size_t given = 0;
  std::optional<std::size_t> taken;
};

class BucketSwaps {
 public:
  BucketSwaps(std::span<const std::uint64_t> costs, std::uint32_t buckets, Buckets& of)
      : costs_(costs), of_(of), items_(buckets), loads_(buckets, 0) {
    for (std::size_t item = 0; item < costs.size(); ++item) {
      items_[of[item]].push_back(item);
      loads_[of[item]] += costs[item];
    }
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
      std::ranges::stable_sort(items_[bucket], {}, cost());
      by_load_.insert({loads_[bucket], bucket});
    }
  }

  /// Whether anything came closer.
  bool step() {
    const std::uint32_t low = by_load_.begin()->second;
    const std::uint32_t high = by_load_.lower_bound({by_load_.rbegin()->first, 0})->second;
    const std::optional<Exchange> best = best_exchange(high, low);
    if (!best) return false;
    move(best->given, high, low);
    if (best->taken) move(*best->taken, low, high);
    return true;
  }

 private:
  std::function<std::uint64_t(std::size_t)> cost() const {
    return [costs = costs_](std::size_t item) { return costs[item]; };
  }

  /// The one whose difference is nearest to half of the buckets', which is below all of it.
  std::optional<Exchange> best_exchange(std::uint32_t high, std::uint32_t low) const {
    const std::uint64_t gap = loads_[high] - loads_[low];
    const std::uint64_t aim = gap / 2;
    std::optional<Exchange> best;
    std::uint64_t least = aim;  // Off the aim; a difference of 0 or of the gap brings nothing.
    const auto look_at = [&](std::size_t given, std::optional<std::size_t> taken) {
      const std::uint64_t back = taken ? costs_[*taken] : 0;
      if (costs_[given] <= back || costs_[given] - back >= gap) return;
      const std::uint64_t difference = costs_[given] - back;
      const std::uint64_t off = difference > aim ? difference - aim : aim - difference;
      if (off >= least) return;
      least = off;
      best = Exchange{given, taken};
    };
    for (const std::size_t given : items_[high]) {
      look_at(given, std::nullopt);
      const std::uint64_t wanted = costs_[given] > aim ? costs_[given] - aim : 0;
      const auto at = std::ranges::lower_bound(items_[low], wanted, {}, cost());
      if (at != items_[low].end()) look_at(given, *at);
      if (at != items_[low].begin()) look_at(given, *(at - 1));
    }
    return best;
  }

  void move(std::size_t item, std::uint32_t from, std::uint32_t to) {
    std::erase(items_[from], item);
    const auto at = std::ranges::upper_bound(items_[to], costs_[item], {}, cost());
    items_[to].insert(at, item);
    change_load(from, loads_[from] - costs_[item]);
    change_load(to, loads_[to] + costs_[item]);
    of_[item] = to;
  }

  void change_load(std::uint32_t bucket, std::uint64_t load) {
    by_load_.erase({loads_[bucket], bucket});
    loads_[bucket] = load;
    by_load_.insert({load, bucket});
  }

  const std::span<const std::uint64_t> costs_;
  Buckets& of_;
  std::vector<std::vector<std::size_t>> items_;  // By bucket, by ascending cost.
  std::vector<std::uint64_t> loads_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_load_;
};

}  // namespace

void even_out(std::span<const std::uint64_t> costs, std::uint32_t buckets, std::uint32_t steps,
              Buckets& of) {
  BucketSwaps swaps(costs, buckets, of);
  for (std::uint32_t step = 0; step < steps; ++step) {
    if (!swaps.step()) return;
  }
}

std::uint64_t fullest(std::span<const std::uint64_t> costs, const Buckets& of,
                      std::uint32_t buckets) {
  std::vector<std::uint64_t> loads(buckets, 0);
  for (std::size_t item = 0; item < costs.size(); ++item) loads[of[item]] += costs[item];
  return loads.empty() ? 0 : *std::ranges::max_element(loads);
}

std::uint64_t least_fullest(std::span<const std::uint64_t> costs, std::uint32_t buckets) {
  if (costs.empty()) return 0;
  std::uint64_t total = 0;
  for (const std::uint64_t cost : costs) total += cost;
  std::uint64_t bound = std::max((total + buckets - 1) / buckets, *std::ranges::max_element(costs));
  if (costs.size() > buckets) {
    std::vector<std::uint64_t> sorted(costs.begin(), costs.end());
    std::ranges::nth_element(sorted, sorted.begin() + buckets, std::greater<>());
    const std::uint64_t after = sorted[buckets];
    const auto last = std::ranges::min_element(sorted.begin(), sorted.begin() + buckets);
    bound = std::max(bound, *last + after);
  }
  return bound;
}

}  // namespace batchloom::planning
