// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "batchloom/planning/baselines.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/task_list.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

__extension__ using Work = unsigned __int128;

constexpr std::uint32_t kBucketSlackPercent = 10;
constexpr std::uint32_t kBalancePercent = 5;
constexpr int kWorkFraction = 20;  ///< Bits, so that L^2 / ranks loses nothing up to 2^20 ranks.

/// Ranks that run the same samples in one round.
struct RoundGroup {
  std::uint32_t ranks = 0;
  Work work = 0;  ///< Of each rank.
  std::vector<std::uint32_t> rows;
};

/// One round: groups side by side, from rank 0 on.
class MegatronRound {
 public:
  using Rows = std::vector<std::uint32_t>;

  MegatronRound(const std::vector<model::PlanSample>& samples, std::uint32_t capacity,
                std::uint32_t ranks)
      : samples_(samples), capacity_(capacity), free_(ranks), ranks_(ranks) {}

  /// Takes what it can of `rows`; at least one, if each needs at most all ranks.
  void fill(const Rows& rows) {
    buckets_ = buckets_of(rows);
    assign();
    for (const auto& bucket : buckets_) left_.insert(left_.end(), bucket.begin(), bucket.end());
    trim();
    while (free_ > 0 && double_one()) {
    }
  }

  const std::vector<RoundGroup>& groups() const { return groups_; }
  /// What the round has not taken, in the order in which the next one looks at it.
  const Rows& left() const { return left_; }

  /// The smallest power of two of ranks that holds a sample, or 2^31.
  std::uint32_t needed(std::uint32_t row) const {
    const std::uint64_t tokens = samples_[row].tokens;
    const std::uint64_t power = std::bit_ceil((tokens + capacity_ - 1) / capacity_);
    return static_cast<std::uint32_t>(std::min(power, std::uint64_t{1} << 31));
  }

 private:
  using Bucket = std::deque<std::uint32_t>;

  Work work_of(std::uint32_t row) const {
    const Work tokens = samples_[row].tokens;
    return (tokens * tokens << kWorkFraction) / needed(row);
  }

  std::vector<Bucket> buckets_of(const Rows& rows) const {
    std::set<std::uint32_t> sizes;
    Work total = 0;
    for (const std::uint32_t row : rows) {
      sizes.insert(needed(row));
      total += work_of(row);
    }
    const std::size_t count = sizes.size();
    std::vector<Bucket> buckets;
    Bucket bucket;
    Work work = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      // Each bucket that is closed counts twice here, once among those that remain and once among
      // those that there are: so in Megatron.
      const std::size_t closed = buckets.size();
      const bool few_left = rows.size() - i + 2 * closed <= count;
      const bool full =
          (work + work_of(rows[i])) * count * 100 > total * (100 + kBucketSlackPercent);
      if (!bucket.empty() && (full || few_left)) {
        buckets.push_back(std::exchange(bucket, {}));
        work = 0;
      }
      bucket.push_back(rows[i]);
      work += work_of(rows[i]);
    }
    buckets.push_back(std::move(bucket));
    return buckets;
  }

  void assign() {
    std::uint32_t first_size = 0;
    bool other_sizes = false;
    while (Bucket* bucket = next_bucket()) {
      const std::uint32_t row = bucket->front();
      bucket->pop_front();
      const std::uint32_t size = needed(row);
      if (first_size == 0) first_size = size;
      other_sizes |= size < first_size;
      // New ranks have no work yet: they come before any group.
      put(row, free_ >= size ? new_group(size) : by_size_[size].begin()->second);
      while (!buckets_.empty() && buckets_.front().empty()) buckets_.erase(buckets_.begin());
      if (other_sizes && !buckets_.empty() && free_ == 0 && balanced()) return;
    }
  }

  /// The first one whose first sample has a place; none: nullptr.
  Bucket* next_bucket() {
    for (Bucket& bucket : buckets_) {
      if (bucket.empty()) continue;
      const std::uint32_t size = needed(bucket.front());
      if (by_size_.contains(size) || free_ >= size) return &bucket;
    }
    return nullptr;
  }

  std::uint32_t new_group(std::uint32_t size) {
    const auto group = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back({.ranks = size, .work = 0, .rows = {}});
    by_size_[size].emplace(Work{0}, group);
    free_ -= size;
    return group;
  }

  void set_work(std::uint32_t group, Work work) {
    auto& same_size = by_size_[groups_[group].ranks];
    same_size.erase({groups_[group].work, group});
    groups_[group].work = work;
    same_size.emplace(work, group);
  }

  void put(std::uint32_t row, std::uint32_t group) {
    groups_[group].rows.push_back(row);
    set_work(group, groups_[group].work + work_of(row));
  }

  Work most() const {
    Work work = 0;
    for (const auto& [size, groups] : by_size_) work = std::max(work, groups.rbegin()->first);
    return work;
  }
  Work least() const {
    Work work = most();
    for (const auto& [size, groups] : by_size_) work = std::min(work, groups.begin()->first);
    return work;
  }
  bool balanced() const { return (most() - least()) * 100 <= most() * kBalancePercent; }

  /// Takes back what the fullest group took last, while that brings the ranks closer.
  void trim() {
    while (free_ == 0 && !balanced()) {
      const Work before = most() - least();
      const auto fullest = static_cast<std::uint32_t>(
          std::ranges::max_element(groups_, {}, &RoundGroup::work) - groups_.begin());
      RoundGroup& group = groups_[fullest];
      if (group.rows.size() < 2) return;
      const std::uint32_t row = group.rows.back();
      set_work(fullest, group.work - work_of(row));
      if (most() - least() >= before) {
        set_work(fullest, group.work + work_of(row));
        return;
      }
      group.rows.pop_back();
      left_.push_back(row);
    }
  }

  /// Doubles the first of the smallest groups, or gives it all ranks where that is less; false: the
  /// idle ranks are too few.
  bool double_one() {
    const auto smallest = std::ranges::min_element(groups_, {}, &RoundGroup::ranks);
    const std::uint32_t more = std::min(2 * smallest->ranks, ranks_) - smallest->ranks;
    if (more > free_) return false;
    smallest->ranks += more;  // The groups behind it move on.
    free_ -= more;
    return true;
  }

  const std::vector<model::PlanSample>& samples_;
  const std::uint32_t capacity_;
  std::uint32_t free_;  // Ranks behind the last group.
  const std::uint32_t ranks_;
  std::vector<Bucket> buckets_;
  std::vector<RoundGroup> groups_;
  std::map<std::uint32_t, std::set<std::pair<Work, std::uint32_t>>> by_size_;  // Work and group.
  Rows left_;
};

void add_round(TaskList& tasks, const MegatronRound& round, std::uint32_t ranks) {
  std::uint32_t first = 0;
  for (const RoundGroup& group : round.groups()) {
    const auto members = ranks_from(first, group.ranks, ranks);
    for (const std::uint32_t& row : group.rows) tasks.add(members, std::span(&row, 1));
    first += group.ranks;
  }
}

}  // namespace

Result<model::StepPlan> plan_megatron(const StrategyInputs& inputs,
                                      std::vector<model::PlanSample> samples) {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  const std::uint32_t ranks = inputs.topology.hdp_size();
  BL_ASSIGN_OR_RETURN(
      const HdpCosts costs,
      HdpCosts::create(inputs.costs, {.ranks = ranks, .capacity_tokens = inputs.capacity_tokens}));
  MegatronRound::Rows rows(samples.size());
  for (std::uint32_t row = 0; row < rows.size(); ++row) rows[row] = row;
  std::ranges::stable_sort(rows, std::greater<>(),
                           [&](std::uint32_t row) { return samples[row].tokens; });
  if (!rows.empty()) {
    const std::uint32_t needed =
        MegatronRound(samples, inputs.capacity_tokens, ranks).needed(rows[0]);
    if (needed > ranks) {
      return Status::does_not_fit(fmt::format(
          "{} does not fit: it needs {} ranks, the power of two that holds it with {} tokens each; "
          "there are {}",
          sample_text(samples[rows[0]]), needed, inputs.capacity_tokens, ranks));
    }
  }
  TaskList tasks(costs, samples);
  while (!rows.empty()) {
    MegatronRound round(samples, inputs.capacity_tokens, ranks);
    round.fill(rows);
    add_round(tasks, round, ranks);
    rows = round.left();
  }
  PlanDraft draft = std::move(tasks).take();
  return make_timed_plan(inputs.topology, "megatron", std::move(samples), std::move(draft),
                         inputs.costs);
}

}  // namespace batchloom::planning
