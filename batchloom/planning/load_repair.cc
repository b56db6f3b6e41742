// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/load_repair.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

namespace batchloom::planning {
namespace {

constexpr std::size_t kPartners = 12;

class Repair {
 public:
  Repair(RankLoads& loads, std::uint64_t bound_ns, std::uint64_t enough_ns)
      : loads_(loads), bound_ns_(bound_ns), enough_ns_(std::max(bound_ns, enough_ns)) {}

  /// Whether anything was exchanged. If not, it will not be another time either.
  bool smooth() {
    std::vector<Entry> order;  // By end, descending; then by rank. Ends stand inverted.
    order.reserve(loads_.ranks());
    std::size_t pairs = 0;
    for (std::uint32_t rank = 0; rank < loads_.ranks(); ++rank) {
      order.emplace_back(~loads_.end_ns(rank), rank);
      if (loads_.end_ns(rank) > enough_ns_) ++pairs;
    }
    pairs = std::min(pairs, order.size() / 2);
    sort_ends(order, pairs);
    bool changed = false;
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::uint32_t from = order[i].second;
      const std::uint32_t to = order[order.size() - 1 - i].second;
      changed |= exchange(from, to, (loads_.end_ns(from) - loads_.end_ns(to)) / 2);
    }
    return changed;
  }

  void lower(std::uint32_t steps) {
    fill_queues();
    std::uint64_t target = next_target();
    while (steps-- > 0 && !last_.empty()) {
      const std::uint32_t from = top(last_);
      const std::uint64_t end = loads_.end_ns(from);
      if (end <= target) {
        if (end <= enough_ns_) return;
        target = next_target();
        continue;
      }
      if (!relieve(from, target)) return;
    }
  }

 private:
  using Entry = std::pair<std::uint64_t, std::uint32_t>;  // End and rank.
  using LastQueue = std::priority_queue<Entry>;
  using FirstQueue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  /// As many entries at either end as if all were sorted. Precondition: there are twice as many.
  static void sort_ends(std::vector<Entry>& order, std::size_t count) {
    const auto low = order.begin() + static_cast<std::ptrdiff_t>(count);
    const auto high = order.end() - static_cast<std::ptrdiff_t>(count);
    std::nth_element(order.begin(), low, order.end());
    std::nth_element(low, high, order.end());
    std::sort(order.begin(), low);
    std::sort(high, order.end());
  }

  bool exchange(std::uint32_t from, std::uint32_t to, std::uint64_t goal_ns) {
    const auto found = loads_.find_exchange(from, to, goal_ns);
    if (!found) return false;
    loads_.apply(from, to, *found);
    return true;
  }

  void fill_queues() {
    std::vector<Entry> entries;
    entries.reserve(loads_.ranks());
    for (std::uint32_t rank = 0; rank < loads_.ranks(); ++rank) {
      entries.emplace_back(loads_.end_ns(rank), rank);
    }
    last_ = LastQueue({}, entries);
    first_ = FirstQueue({}, std::move(entries));
  }
  void push(std::uint32_t rank) {
    last_.emplace(loads_.end_ns(rank), rank);
    first_.emplace(loads_.end_ns(rank), rank);
  }
  /// Of the first entry that still holds; kNone where there is none.
  template <class Queue>
  std::uint32_t top(Queue& queue) {
    while (!queue.empty() && loads_.end_ns(queue.top().second) != queue.top().first) queue.pop();
    return queue.empty() ? RankLoads::kNone : queue.top().second;
  }

  std::uint64_t next_target() {
    const std::uint64_t end = loads_.end_ns(top(last_));
    const std::uint64_t excess = end > bound_ns_ ? end - bound_ns_ : 0;
    return end - std::min(excess, std::max(bound_ns_ / 2000, excess / 20));
  }

  /// Whether the rank could be brought below the target, or at least nearer to it.
  bool relieve(std::uint32_t from, std::uint64_t target_ns) {
    const bool done =
        trade(from, target_ns) || give_to_first(from, target_ns) || chain(from, target_ns);
    if (done) push(from);
    return done;
  }

  bool trade(std::uint32_t from, std::uint64_t target_ns) {
    const auto trade = loads_.find_trade(from, target_ns);
    if (!trade) return false;
    loads_.apply(from, trade->to, trade->exchange);
    push(trade->to);
    return true;
  }

  /// Exchanges with one of the ranks that end first.
  bool give_to_first(std::uint32_t from, std::uint64_t target_ns) {
    std::vector<std::uint32_t> tried;
    bool done = false;
    for (std::size_t i = 0; i < kPartners && !done; ++i) {
      const std::uint32_t to = top(first_);
      if (to == RankLoads::kNone) break;
      first_.pop();
      tried.push_back(to);
      if (to == from || loads_.end_ns(to) >= target_ns) continue;
      const std::uint64_t excess = loads_.end_ns(from) - target_ns;
      const std::uint64_t room = target_ns - loads_.end_ns(to);
      const auto found =
          loads_.find_exchange(from, to, excess + (room > excess ? (room - excess) / 2 : 0));
      if (!found || found->to_end_ns > target_ns) continue;
      loads_.apply(from, to, *found);
      done = true;
    }
    for (const std::uint32_t rank : tried) push(rank);
    return done;
  }

  /// Moves a sample to a rank that thereby ends too late, and trades there.
  bool chain(std::uint32_t from, std::uint64_t target_ns) {
    constexpr std::uint32_t kProbes = 48;
    const std::uint32_t ranks = loads_.ranks();
    for (std::size_t i = 0; i < loads_.items_of(from).size(); ++i) {
      const std::uint32_t item = loads_.items_of(from)[i];
      for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        const auto to =
            static_cast<std::uint32_t>((from + 1 + std::uint64_t{probe} * ranks / kProbes) % ranks);
        if (to == from || loads_.end_ns(to) > target_ns) continue;
        if (loads_.items_of(to).empty()) continue;
        const auto move = loads_.evaluate(from, to, item, RankLoads::kNone);
        if (move.from_end_ns > target_ns || move.to_end_ns > target_ns + target_ns / 64) continue;
        const RankLoads::Exchange back{item, RankLoads::kNone, loads_.end_ns(to),
                                       loads_.end_ns(from)};
        loads_.apply(from, to, move);
        std::optional<RankLoads::Trade> trade;
        if (move.to_end_ns > target_ns) {
          trade = loads_.find_trade(to, target_ns);
          if (!trade) {
            loads_.apply(to, from, back);
            continue;
          }
          loads_.apply(to, trade->to, trade->exchange);
          push(trade->to);
        }
        push(to);
        return true;
      }
    }
    return false;
  }

  RankLoads& loads_;
  const std::uint64_t bound_ns_;
  const std::uint64_t enough_ns_;
  LastQueue last_;
  FirstQueue first_;
};

}  // namespace

void repair_loads(RankLoads& loads, std::uint64_t bound_ns, const RepairEffort& effort) {
  Repair repair(loads, bound_ns, effort.enough_ns);
  for (std::uint32_t round = 0; round < effort.rounds; ++round) {
    if (loads.makespan_ns() <= std::max(bound_ns, effort.enough_ns)) return;
    if (!repair.smooth()) break;
  }
  repair.lower(effort.steps);
}

}  // namespace batchloom::planning
