// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/rank_loads.h"

#include <algorithm>
#include <array>
#include <bit>

namespace batchloom::planning {
namespace {

/// Ranks by rough load: the lowest of 4,096 buckets that holds one is found in two steps.
class RoughQueue {
 public:
  RoughQueue(std::uint32_t ranks, std::uint64_t low_ns, std::uint64_t high_ns)
      : low_ns_(low_ns), width_ns_((high_ns - low_ns) / kBuckets + 1), next_(ranks) {
    first_.fill(kNone);
  }

  void push(std::uint32_t rank, std::uint64_t load_ns) {
    const std::uint64_t bucket = std::min((load_ns - low_ns_) / width_ns_, kBuckets - 1);
    next_[rank] = first_[bucket];
    first_[bucket] = rank;
    used_[bucket / 64] |= std::uint64_t{1} << (bucket % 64);
    used_words_ |= std::uint64_t{1} << (bucket / 64);
  }

  /// Precondition: it is not empty.
  std::uint32_t pop() {
    const auto word = static_cast<std::size_t>(std::countr_zero(used_words_));
    const auto bit = static_cast<std::size_t>(std::countr_zero(used_[word]));
    std::uint32_t& head = first_[word * 64 + bit];
    const std::uint32_t rank = head;
    head = next_[rank];
    if (head == kNone) {
      used_[word] &= used_[word] - 1;
      if (used_[word] == 0) used_words_ &= used_words_ - 1;
    }
    return rank;
  }

 private:
  static constexpr std::uint64_t kBuckets = 4096;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  const std::uint64_t low_ns_;
  const std::uint64_t width_ns_;
  std::array<std::uint32_t, kBuckets> first_;
  std::vector<std::uint32_t> next_;  // By rank.
  std::array<std::uint64_t, kBuckets / 64> used_{};
  std::uint64_t used_words_ = 0;
};

}  // namespace

RankLoads::RankLoads(const HdpCosts& costs, std::span<const ShortSample> shorts,
                     std::vector<std::uint64_t> begin_ns)
    : costs_(costs),
      shorts_(shorts),
      begin_ns_(std::move(begin_ns)),
      end_ns_(begin_ns_),
      first_(begin_ns_.size(), kNone),
      next_(shorts.size(), kNone),
      rank_of_(shorts.size(), kNone) {}

void RankLoads::spread() {
  if (shorts_.empty()) return;
  const std::uint32_t capacity = costs_.shape().capacity_tokens;
  std::uint64_t work = 0;
  for (std::uint32_t item = 0; item < shorts_.size(); ++item) work += work_ns(item);
  const auto [low, high] = std::ranges::minmax(begin_ns_);
  const std::uint64_t opening = costs_.rest_ns(1);
  RoughQueue queue(ranks(), low, high + opening + 2 * work / ranks());
  std::vector<std::uint64_t> closed = begin_ns_;
  std::vector<std::uint32_t> open(ranks(), 0);
  std::vector<std::uint32_t> last(ranks(), kNone);
  for (std::uint32_t rank = ranks(); rank-- > 0;) queue.push(rank, closed[rank] + opening);
  for (std::uint32_t item = 0; item < shorts_.size(); ++item) {
    const ShortSample& sample = shorts_[item];
    const std::uint32_t rank = queue.pop();
    if (open[rank] + sample.tokens > capacity) {
      closed[rank] += costs_.rest_ns(open[rank]);
      open[rank] = 0;
    }
    open[rank] += sample.tokens;
    closed[rank] += sample.attention_ns;
    (last[rank] == kNone ? first_[rank] : next_[last[rank]]) = item;
    last[rank] = item;
    rank_of_[item] = rank;
    queue.push(rank, closed[rank] + costs_.rest_ns(open[rank]));
  }
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    gather(rank, give_items_);
    end_ns_[rank] = end_with(rank, give_items_, kNone, kNone);
  }
}

std::uint64_t RankLoads::makespan_ns() const {
  return std::ranges::max(end_ns_);
}

void RankLoads::gather(std::uint32_t rank, Items& items) const {
  items.clear();
  for (std::uint32_t item = first_[rank]; item != kNone; item = next_[item]) items.push_back(item);
}

void RankLoads::pack_items(const Items& items) const {
  bins_.clear();
  bin_of_.clear();
  for (const std::uint32_t item : items) {
    const std::uint32_t tokens = shorts_[item].tokens;
    std::uint32_t bin = 0;
    while (bin < bins_.size() && bins_[bin] + tokens > costs_.shape().capacity_tokens) ++bin;
    if (bin == bins_.size()) bins_.push_back(0);
    bins_[bin] += tokens;
    bin_of_.push_back(bin);
  }
}

std::uint64_t RankLoads::end_with(std::uint32_t rank, const Items& items, std::uint32_t without,
                                  std::uint32_t with) const {
  const std::uint32_t capacity = costs_.shape().capacity_tokens;
  std::uint64_t end = begin_ns_[rank];
  bins_.clear();
  const auto add = [&](std::uint32_t item) {
    const ShortSample& sample = shorts_[item];
    end += sample.attention_ns;
    for (std::uint32_t& bin : bins_) {
      if (bin + sample.tokens > capacity) continue;
      bin += sample.tokens;
      return;
    }
    bins_.push_back(sample.tokens);
  };
  for (const std::uint32_t item : items) {
    if (with < item) {
      add(with);
      with = kNone;
    }
    if (item != without) add(item);
  }
  if (with != kNone) add(with);
  for (const std::uint32_t bin : bins_) end += costs_.rest_ns(bin);
  return end;
}

std::optional<RankLoads::Exchange> RankLoads::find_exchange(std::uint32_t from, std::uint32_t to,
                                                            std::uint64_t goal_ns) const {
  gather(from, give_items_);
  gather(to, take_items_);
  struct Candidate {
    std::uint64_t off = UINT64_MAX;  // By which its work misses the goal.
    std::uint32_t give = kNone;
    std::uint32_t take = kNone;
  };
  std::array<Candidate, 4> best;
  const auto consider = [&](std::uint32_t give, std::uint32_t take) {
    const std::uint64_t given = work_ns(give);
    const std::uint64_t taken = take == kNone ? 0 : work_ns(take);
    if (given <= taken) return;
    const std::uint64_t moved = given - taken;
    Candidate candidate{moved > goal_ns ? moved - goal_ns : goal_ns - moved, give, take};
    for (Candidate& place : best) {
      if (candidate.off < place.off) std::swap(candidate, place);
    }
  };
  // Both lists descend: for each sample given, the taken one moves on.
  std::size_t after = 0;
  for (const std::uint32_t give : give_items_) {
    while (after < take_items_.size() && work_ns(take_items_[after]) + goal_ns > work_ns(give)) {
      ++after;
    }
    if (after > 0) consider(give, take_items_[after - 1]);
    consider(give, after < take_items_.size() ? take_items_[after] : kNone);
  }
  std::optional<Exchange> found;
  std::uint64_t found_end = std::max(end_ns_[from], end_ns_[to]);
  for (const Candidate& candidate : best) {
    if (candidate.give == kNone) break;
    const Exchange exchange{candidate.give, candidate.take,
                            end_with(from, give_items_, candidate.give, candidate.take),
                            end_with(to, take_items_, candidate.take, candidate.give)};
    const std::uint64_t end = std::max(exchange.from_end_ns, exchange.to_end_ns);
    if (end >= found_end) continue;
    found = exchange;
    found_end = end;
  }
  return found;
}

std::optional<RankLoads::Trade> RankLoads::find_trade(std::uint32_t from,
                                                      std::uint64_t target_ns) const {
  constexpr std::uint32_t kProbes = 24;
  const std::uint64_t excess = end_ns_[from] - target_ns;
  gather(from, give_items_);
  for (const std::uint32_t give : give_items_) {
    const std::uint64_t given = work_ns(give);
    if (given <= excess) continue;
    const auto first_below = [&](std::uint64_t less) {
      std::uint32_t low = give + 1;
      auto high = static_cast<std::uint32_t>(shorts_.size());
      while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (work_ns(middle) + less <= given) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      return low;
    };
    const std::uint32_t begin = first_below(excess);
    const std::uint32_t end = first_below(excess + target_ns / 64);
    const std::uint32_t stride = (end - begin) / kProbes + 1;
    for (std::uint32_t take = begin + from % stride; take < end; take += stride) {
      const std::uint32_t to = rank_of_[take];
      if (to == from || end_ns_[to] + given - work_ns(take) > target_ns) continue;
      Trade trade{to, {give, take, end_with(from, give_items_, give, take), 0}};
      if (trade.exchange.from_end_ns > target_ns) continue;
      gather(to, take_items_);
      trade.exchange.to_end_ns = end_with(to, take_items_, take, give);
      if (trade.exchange.to_end_ns <= target_ns) return trade;
    }
  }
  return std::nullopt;
}

RankLoads::Exchange RankLoads::evaluate(std::uint32_t from, std::uint32_t to, std::uint32_t give,
                                        std::uint32_t take) const {
  gather(from, give_items_);
  gather(to, take_items_);
  return {give, take, end_with(from, give_items_, give, take),
          end_with(to, take_items_, take, give)};
}

void RankLoads::apply(std::uint32_t from, std::uint32_t to, const Exchange& exchange) {
  remove(from, exchange.give);
  insert(to, exchange.give);
  if (exchange.take != kNone) {
    remove(to, exchange.take);
    insert(from, exchange.take);
  }
  end_ns_[from] = exchange.from_end_ns;
  end_ns_[to] = exchange.to_end_ns;
}

void RankLoads::insert(std::uint32_t rank, std::uint32_t item) {
  std::uint32_t* place = &first_[rank];
  while (*place < item) place = &next_[*place];  // kNone is larger than all.
  next_[item] = *place;
  *place = item;
  rank_of_[item] = rank;
}

void RankLoads::remove(std::uint32_t rank, std::uint32_t item) {
  std::uint32_t* place = &first_[rank];
  while (*place != item) place = &next_[*place];
  *place = next_[item];
}

}  // namespace batchloom::planning
