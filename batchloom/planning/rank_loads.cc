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
      items_(ranks(), {}) {}

void RankLoads::spread() {
  if (shorts_.empty()) return;
  const std::uint32_t capacity = costs_.shape().capacity_tokens;
  std::uint64_t work = 0;
  for (std::uint32_t item = 0; item < shorts_.size(); ++item) work += work_ns(item);
  const auto [low, high] = std::ranges::minmax(begin_ns_);
  const std::uint64_t opening = costs_.rest_ns(1);
  RoughQueue queue(ranks(), low, high + opening + 2 * work / ranks());
  struct Fill {
    std::uint64_t closed_ns = 0;  // When its packs end but the last, and what the last has so far.
    std::uint32_t open_tokens = 0;  // Of the last one.
  };
  std::vector<Fill> fills(ranks());
  for (std::uint32_t rank = ranks(); rank-- > 0;) {
    fills[rank].closed_ns = begin_ns_[rank];
    queue.push(rank, begin_ns_[rank] + opening);
  }
  rank_of_.reserve(shorts_.size());
  for (const ShortSample& sample : shorts_) {
    const std::uint32_t rank = queue.pop();
    Fill& fill = fills[rank];
    if (fill.open_tokens + sample.tokens > capacity) {
      fill.closed_ns += costs_.rest_ns(fill.open_tokens);
      fill.open_tokens = 0;
    }
    fill.open_tokens += sample.tokens;
    fill.closed_ns += sample.attention_ns;
    rank_of_.push_back(rank);
    queue.push(rank, fill.closed_ns + costs_.rest_ns(fill.open_tokens));
  }
  items_ = RankItems(ranks(), rank_of_);
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    end_ns_[rank] = end_with(rank, kNone, kNone);
  }
}

std::uint64_t RankLoads::makespan_ns() const {
  return std::ranges::max(end_ns_);
}

void RankLoads::pack_items(Items items) const {
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

std::uint64_t RankLoads::end_with(std::uint32_t rank, std::uint32_t without,
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
  for (const std::uint32_t item : items_of(rank)) {
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
  const Items takes = items_of(to);
  std::size_t after = 0;
  for (const std::uint32_t give : items_of(from)) {
    while (after < takes.size() && work_ns(takes[after]) + goal_ns > work_ns(give)) ++after;
    if (after > 0) consider(give, takes[after - 1]);
    consider(give, after < takes.size() ? takes[after] : kNone);
  }
  std::optional<Exchange> found;
  std::uint64_t found_end = std::max(end_ns_[from], end_ns_[to]);
  for (const Candidate& candidate : best) {
    if (candidate.give == kNone) break;
    const std::uint64_t from_end = end_with(from, candidate.give, candidate.take);
    if (from_end >= found_end) continue;
    const std::uint64_t to_end = end_with(to, candidate.take, candidate.give);
    if (to_end >= found_end) continue;
    found = Exchange{candidate.give, candidate.take, from_end, to_end};
    found_end = std::max(from_end, to_end);
  }
  return found;
}

std::optional<RankLoads::Trade> RankLoads::find_trade(std::uint32_t from,
                                                      std::uint64_t target_ns) const {
  constexpr std::uint32_t kProbes = 24;
  const std::uint64_t excess = end_ns_[from] - target_ns;
  for (const std::uint32_t give : items_of(from)) {
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
      Trade trade{to, {give, take, end_with(from, give, take), 0}};
      if (trade.exchange.from_end_ns > target_ns) continue;
      trade.exchange.to_end_ns = end_with(to, take, give);
      if (trade.exchange.to_end_ns <= target_ns) return trade;
    }
  }
  return std::nullopt;
}

RankLoads::Exchange RankLoads::evaluate(std::uint32_t from, std::uint32_t to, std::uint32_t give,
                                        std::uint32_t take) const {
  return {give, take, end_with(from, give, take), end_with(to, take, give)};
}

void RankLoads::apply(std::uint32_t from, std::uint32_t to, const Exchange& exchange) {
  move(exchange.give, from, to);
  if (exchange.take != kNone) move(exchange.take, to, from);
  end_ns_[from] = exchange.from_end_ns;
  end_ns_[to] = exchange.to_end_ns;
}

void RankLoads::move(std::uint32_t item, std::uint32_t from, std::uint32_t to) {
  items_.remove(from, item);
  items_.insert(to, item);
  rank_of_[item] = to;
}

}  // namespace batchloom::planning
