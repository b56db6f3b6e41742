// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/gang_placement.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "batchloom/planning/rank_pieces.h"

namespace batchloom::planning {
namespace {

/// Ranks that all end at the same time.
struct Group {
  std::uint64_t end_ns = 0;
  RankPieces ranks;
};

/// A group in a queue, that which ends first being the first.
struct Entry {
  std::uint64_t end_ns = 0;
  std::uint32_t any_rank = 0;
  std::uint32_t group = 0;

  friend bool operator>(const Entry& a, const Entry& b) {
    return std::tie(a.end_ns, a.any_rank) > std::tie(b.end_ns, b.any_rank);
  }
};
using GroupQueue = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

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
  GangPlacer(const HdpCosts& costs, const RankLevels& levels, const HdpProblem& problem,
             const PlacementRule& rule)
      : costs_(costs), levels_(levels), problem_(problem), longs_(problem.longs), rule_(rule) {
    placement_.gangs.reserve(longs_.size());
    placement_.end_ns.resize(costs.shape().ranks, 0);
  }

  bool place() {
    add_group({0, RankPieces(levels_, costs_.shape().ranks)});
    for (std::uint32_t i = 0; i < rule_.shelves; ++i) {
      if (!add_shelf()) return false;
    }
    while (next_ < longs_.size()) {
      if (!place_next()) return false;
    }
    return true;
  }

  GangPlacement take() { return std::move(placement_); }

 private:
  /// A group that a sample may take ranks of: the first of `queue`.
  struct Spot {
    GroupQueue* queue = nullptr;
    const DegreeChoice* choice = nullptr;
  };

  bool add_shelf();
  std::optional<Shelf> best_shelf() const;
  std::optional<Shelf> shelf_of(std::span<const LongSample> samples) const;
  std::uint32_t degrees_within(std::span<const LongSample> samples, std::uint64_t time_ns,
                               std::vector<std::uint32_t>& degrees) const;
  bool place_next();
  void reopen(const LongSample& sample);
  std::optional<Spot> find_spot(const LongSample& sample);
  void find_scattered(const LongSample& sample, bool in_one_island, std::optional<Spot>& best);
  const DegreeChoice* fit(const LongSample& sample, const Group& group) const;
  std::uint32_t degree_for(const LongSample& sample, const Group& group, std::uint32_t least) const;
  bool put_by_target(const LongSample& sample, Group& group, const DegreeChoice* choice);
  void put(const LongSample& sample, std::uint64_t start_ns, RankPieces ranks);
  void add_group(Group group);
  void join_all();

  std::uint64_t time_ns(const LongSample& sample, std::uint32_t degree) const {
    return costs_.gang_ns(sample.attention_ns, sample.tokens, degree);
  }
  std::uint64_t time_on(const LongSample& sample, const RankPieces& ranks) const {
    const std::size_t level = costs_.shape().links.empty() ? 0 : ranks.level(levels_);
    return costs_.gang_ns(sample.attention_ns, sample.tokens, ranks.ranks(), level);
  }
  /// Whether so many could lie in one island, and in this group would not.
  bool would_scatter(const Group& group, std::uint32_t degree) const {
    return rule_.islands_first && degree > group.ranks.widest() && degree <= levels_.widest(0);
  }

  const HdpCosts& costs_;
  const RankLevels& levels_;
  const HdpProblem& problem_;
  const std::span<const LongSample> longs_;
  const PlacementRule& rule_;
  GangPlacement placement_;
  std::size_t next_ = 0;  // Of longs_.
  std::vector<Group> groups_;
  GroupQueue lowest_;
  std::map<std::uint32_t, GroupQueue> scattered_;      // By the largest piece.
  std::multimap<std::uint32_t, std::uint32_t> aside_;  // Groups by their number of ranks.
};

/// The sum of the smallest degrees with which all samples end in time; more than there are ranks
/// where one cannot.
std::uint32_t GangPlacer::degrees_within(std::span<const LongSample> samples, std::uint64_t time_ns,
                                         std::vector<std::uint32_t>& degrees) const {
  degrees.clear();
  std::uint32_t sum = 0;
  for (const LongSample& sample : samples) {
    const DegreeChoice* choice = problem_.within(sample, time_ns);
    if (choice == nullptr) return UINT32_MAX;
    degrees.push_back(choice->degree);
    sum += choice->degree;
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
    high = std::max(high, problem_.choices_of(sample).front().time_ns);
    low = std::max(low, problem_.choices_of(sample).back().time_ns);
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
  join_all();
  Group base = std::move(groups_[lowest_.top().group]);
  lowest_.pop();
  for (const std::uint32_t degree : shelf->degrees) {
    put(longs_[next_++], base.end_ns, base.ranks.take(levels_, degree));
  }
  if (base.ranks.ranks() > 0) add_group(std::move(base));
  return true;
}

void GangPlacer::add_group(Group group) {
  lowest_.push({group.end_ns, group.ranks.any_rank(), static_cast<std::uint32_t>(groups_.size())});
  groups_.push_back(std::move(group));
}

/// All ranks wait for the last of them.
void GangPlacer::join_all() {
  lowest_ = {};
  scattered_.clear();
  aside_.clear();
  add_group({std::ranges::max(placement_.end_ns), RankPieces(levels_, costs_.shape().ranks)});
}

void GangPlacer::put(const LongSample& sample, std::uint64_t start_ns, RankPieces ranks) {
  const std::uint64_t time = time_on(sample, ranks);
  const auto begin = static_cast<std::uint32_t>(placement_.members.size());
  ranks.append_to(placement_.members);
  const auto end = static_cast<std::uint32_t>(placement_.members.size());
  placement_.gangs.push_back({sample.row, sample.tokens, {begin, end}, start_ns, time});
  ranks.for_each([&](std::uint32_t rank) { placement_.end_ns[rank] = start_ns + time; });
  add_group({start_ns + time, std::move(ranks)});
}

bool GangPlacer::place_next() {
  const LongSample& sample = longs_[next_];
  reopen(sample);
  const auto spot = find_spot(sample);
  if (!spot) return false;
  Group group = std::move(groups_[spot->queue->top().group]);
  spot->queue->pop();
  if (!put_by_target(sample, group, spot->choice)) return false;
  if (group.ranks.ranks() > 0) add_group(std::move(group));
  ++next_;
  return true;
}

/// Groups that are wide enough again.
void GangPlacer::reopen(const LongSample& sample) {
  for (auto it = aside_.lower_bound(sample.degrees.min); it != aside_.end();) {
    const Group& group = groups_[it->second];
    lowest_.push({group.end_ns, group.ranks.any_rank(), it->second});
    it = aside_.erase(it);
  }
}

std::optional<GangPlacer::Spot> GangPlacer::find_spot(const LongSample& sample) {
  std::optional<Spot> best;
  std::erase_if(scattered_, [](const auto& entry) { return entry.second.empty(); });
  for (; !lowest_.empty(); lowest_.pop()) {
    const Entry entry = lowest_.top();
    const Group& group = groups_[entry.group];
    if (group.ranks.ranks() < sample.degrees.min) {
      aside_.emplace(group.ranks.ranks(), entry.group);
      continue;
    }
    const DegreeChoice* choice = fit(sample, group);
    if (choice == nullptr) break;  // Nor does it in those that end later.
    if (would_scatter(group, choice->degree)) {
      scattered_[group.ranks.widest()].push(entry);
      continue;
    }
    best = Spot{&lowest_, choice};
    break;
  }
  find_scattered(sample, true, best);
  if (!best) find_scattered(sample, false, best);
  if (best || !lowest_.empty() || !scattered_.empty()) return best;
  join_all();
  const DegreeChoice* choice = fit(sample, groups_[lowest_.top().group]);
  if (choice != nullptr) best = Spot{&lowest_, choice};
  return best;
}

/// Replaces `best` by a scattered group that ends before.
void GangPlacer::find_scattered(const LongSample& sample, bool in_one_island,
                                std::optional<Spot>& best) {
  for (auto& [widest, queue] : scattered_) {
    if (queue.empty() || (best && queue.top() > best->queue->top())) continue;
    const DegreeChoice* choice = fit(sample, groups_[queue.top().group]);
    if (choice == nullptr || (in_one_island && choice->degree > widest)) continue;
    best = Spot{&queue, choice};
  }
}

/// The smallest degree on which the sample ends by the target; nullptr where the group has no such.
const DegreeChoice* GangPlacer::fit(const LongSample& sample, const Group& group) const {
  if (group.end_ns >= rule_.target_ns) return nullptr;
  const DegreeChoice* choice = problem_.within(sample, rule_.target_ns - group.end_ns);
  return choice != nullptr && choice->degree <= group.ranks.ranks() ? choice : nullptr;
}

/// The whole group, where less than the next sample needs would be left.
std::uint32_t GangPlacer::degree_for(const LongSample& sample, const Group& group,
                                     std::uint32_t least) const {
  const std::uint32_t ranks = group.ranks.ranks();
  const std::uint32_t needed_next = next_ + 1 < longs_.size() ? longs_[next_ + 1].degrees.min : 1;
  if (ranks - least >= needed_next || ranks > sample.degrees.max) return least;
  const bool leaves_island = least <= group.ranks.widest() && ranks > group.ranks.widest();
  return rule_.islands_first && leaves_island ? least : ranks;
}

/// Where links are slower than the best there could be, on more ranks, as long as that helps.
bool GangPlacer::put_by_target(const LongSample& sample, Group& group, const DegreeChoice* choice) {
  const std::uint32_t whole = degree_for(sample, group, choice->degree);
  if (costs_.shape().links.empty()) {
    put(sample, group.end_ns, group.ranks.take(levels_, whole));
    return true;
  }
  std::vector<std::uint32_t> degrees = {whole};
  const auto choices = problem_.choices_of(sample);
  for (; choice != choices.data() + choices.size(); ++choice) degrees.push_back(choice->degree);
  for (const std::uint32_t degree : degrees) {
    if (degree > group.ranks.ranks()) continue;
    RankPieces rest = group.ranks;
    RankPieces taken = rest.take(levels_, degree);
    if (group.end_ns + time_on(sample, taken) > rule_.target_ns) continue;
    group.ranks = std::move(rest);
    put(sample, group.end_ns, std::move(taken));
    return true;
  }
  return false;
}

}  // namespace

std::optional<GangPlacement> place_gangs(const HdpCosts& costs, const RankLevels& levels,
                                         const HdpProblem& problem, const PlacementRule& rule) {
  GangPlacer placer(costs, levels, problem, rule);
  if (!placer.place()) return std::nullopt;
  return placer.take();
}

}  // namespace batchloom::planning
