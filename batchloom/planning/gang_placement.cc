// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/gang_placement.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace batchloom::planning {
namespace {

/// Ranks [first, first + width) that all end at the same time.
struct Group {
  std::uint64_t end_ns = 0;
  std::uint32_t first = 0;
  std::uint32_t width = 0;

  friend bool operator>(const Group& a, const Group& b) {
    return std::tie(a.end_ns, a.first) > std::tie(b.end_ns, b.first);
  }
};

/// Samples of one shelf and the degree of each.
struct Shelf {
  std::vector<std::uint32_t> degrees;
  std::uint64_t time_ns = 0;  ///< Of the slowest.
  /// Share of the shelf's area that is used, in 1/1,024.
  std::uint64_t used = 0;
};

constexpr std::uint64_t kShelfUsedLeast = 993;  // 0.97
constexpr std::size_t kShelfSamplesMost = 512;
constexpr std::size_t kShelfTries = 24;

class GangPlacer {
 public:
  GangPlacer(const HdpCosts& costs, const HdpProblem& problem, std::uint64_t target_ns)
      : costs_(costs), longs_(problem.longs), target_ns_(target_ns) {
    placement_.gangs.reserve(longs_.size());
    placement_.end_ns.resize(costs.shape().ranks, 0);
  }

  bool place(std::uint32_t shelves) {
    lowest_.push({0, 0, costs_.shape().ranks});
    for (std::uint32_t i = 0; i < shelves; ++i) {
      if (!add_shelf()) return false;
    }
    while (next_ < longs_.size()) {
      if (!place_next()) return false;
    }
    return true;
  }

  GangPlacement take() {
    for (; !lowest_.empty(); lowest_.pop()) note_end(lowest_.top());
    for (const auto& [width, group] : aside_) note_end(group);
    return std::move(placement_);
  }

 private:
  bool add_shelf();
  std::optional<Shelf> best_shelf() const;
  std::optional<Shelf> shelf_of(std::span<const LongSample> samples) const;
  std::uint32_t degrees_within(std::span<const LongSample> samples, std::uint64_t time_ns,
                               std::vector<std::uint32_t>& degrees) const;
  bool place_next();
  void put(const LongSample& sample, Group& group, std::uint32_t degree);
  /// All ranks wait for the last of them. Precondition: all groups are aside.
  void join_all() {
    Group all{0, 0, costs_.shape().ranks};
    for (const auto& [width, group] : aside_) all.end_ns = std::max(all.end_ns, group.end_ns);
    aside_.clear();
    lowest_.push(all);
  }

  std::uint64_t time_ns(const LongSample& sample, std::uint32_t degree) const {
    return costs_.gang_ns(sample.attention_ns, sample.tokens, degree);
  }
  /// The smallest degree, from `least` on, on which the sample takes at most `time`; max + 1 where
  /// there is none.
  std::uint32_t degree_within(const LongSample& sample, std::uint64_t time) const;
  void note_end(const Group& group) {
    std::fill_n(placement_.end_ns.begin() + group.first, group.width, group.end_ns);
  }

  const HdpCosts& costs_;
  const std::span<const LongSample> longs_;
  const std::uint64_t target_ns_;
  GangPlacement placement_;
  std::size_t next_ = 0;  // Of longs_.
  std::priority_queue<Group, std::vector<Group>, std::greater<>> lowest_;
  std::multimap<std::uint32_t, Group> aside_;  // By width.
};

std::uint32_t GangPlacer::degree_within(const LongSample& sample, std::uint64_t time) const {
  std::uint32_t low = sample.degrees.min;
  std::uint32_t high = sample.degrees.max + 1;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (time_ns(sample, middle) <= time) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// The sum of the smallest degrees with which all samples end in time; more than there are ranks
/// where one cannot.
std::uint32_t GangPlacer::degrees_within(std::span<const LongSample> samples, std::uint64_t time_ns,
                                         std::vector<std::uint32_t>& degrees) const {
  degrees.clear();
  std::uint32_t sum = 0;
  for (const LongSample& sample : samples) {
    degrees.push_back(degree_within(sample, time_ns));
    if (degrees.back() > sample.degrees.max) return UINT32_MAX;
    sum += degrees.back();
    if (sum > costs_.shape().ranks) return UINT32_MAX;
  }
  return sum;
}

std::optional<Shelf> GangPlacer::shelf_of(std::span<const LongSample> samples) const {
  const std::uint32_t ranks = costs_.shape().ranks;
  Shelf shelf;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (const LongSample& sample : samples) {
    high = std::max(high, time_ns(sample, sample.degrees.min));
    low = std::max(low, time_ns(sample, sample.degrees.max));
  }
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (degrees_within(samples, middle, shelf.degrees) <= ranks) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (degrees_within(samples, high, shelf.degrees) > ranks) return std::nullopt;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::uint64_t time = time_ns(samples[i], shelf.degrees[i]);
    shelf.time_ns = std::max(shelf.time_ns, time);
    shelf.used += shelf.degrees[i] * time / 1024;
  }
  shelf.used = shelf.used * 1024 / (ranks * shelf.time_ns / 1024 + 1);
  return shelf;
}

std::optional<Shelf> GangPlacer::best_shelf() const {
  const std::uint32_t ranks = costs_.shape().ranks;
  std::vector<std::size_t> counts;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  for (std::size_t i = next_; i < longs_.size() && i - next_ < kShelfSamplesMost; ++i) {
    least += longs_[i].degrees.min;
    most += longs_[i].degrees.max;
    if (least > ranks) break;
    if (most >= ranks) counts.push_back(i + 1 - next_);
  }
  std::optional<Shelf> best;
  const std::size_t stride = counts.size() / kShelfTries + 1;
  for (std::size_t i = 0; i < counts.size(); i += stride) {
    auto shelf = shelf_of(longs_.subspan(next_, counts[i]));
    if (shelf && shelf->used >= kShelfUsedLeast && (!best || shelf->used > best->used)) {
      best = std::move(shelf);
    }
  }
  return best;
}

/// On what is one group of all ranks, or a shelf.
bool GangPlacer::add_shelf() {
  const auto shelf = best_shelf();
  if (!shelf) return false;
  Group base{0, 0, costs_.shape().ranks};
  for (; !lowest_.empty(); lowest_.pop()) {
    base.end_ns = std::max(base.end_ns, lowest_.top().end_ns);
  }
  for (const std::uint32_t degree : shelf->degrees) put(longs_[next_++], base, degree);
  if (base.width > 0) lowest_.push(base);
  return true;
}

/// On the group's first ranks, which leave it.
void GangPlacer::put(const LongSample& sample, Group& group, std::uint32_t degree) {
  const std::uint64_t time = time_ns(sample, degree);
  placement_.gangs.push_back({sample.row, sample.tokens, group.first, degree, group.end_ns, time});
  lowest_.push({group.end_ns + time, group.first, degree});
  group.first += degree;
  group.width -= degree;
}

bool GangPlacer::place_next() {
  const LongSample& sample = longs_[next_];
  for (auto it = aside_.lower_bound(sample.degrees.min); it != aside_.end();) {
    lowest_.push(it->second);
    it = aside_.erase(it);
  }
  while (!lowest_.empty() && lowest_.top().width < sample.degrees.min) {
    aside_.emplace(lowest_.top().width, lowest_.top());
    lowest_.pop();
  }
  if (lowest_.empty()) join_all();
  Group group = lowest_.top();
  if (group.end_ns >= target_ns_) return false;
  std::uint32_t degree = degree_within(sample, target_ns_ - group.end_ns);
  if (degree > std::min(sample.degrees.max, group.width)) return false;
  const std::uint32_t needed_next = next_ + 1 < longs_.size() ? longs_[next_ + 1].degrees.min : 1;
  if (group.width - degree < needed_next && group.width <= sample.degrees.max) degree = group.width;
  lowest_.pop();
  put(sample, group, degree);
  if (group.width > 0) lowest_.push(group);
  ++next_;
  return true;
}

}  // namespace

std::optional<GangPlacement> place_gangs(const HdpCosts& costs, const HdpProblem& problem,
                                         std::uint64_t target_ns, std::uint32_t shelves) {
  GangPlacer placer(costs, problem, target_ns);
  if (!placer.place(shelves)) return std::nullopt;
  return placer.take();
}

}  // namespace batchloom::planning
