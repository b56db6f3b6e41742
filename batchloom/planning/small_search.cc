// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/small_search.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "batchloom/base/random.h"

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kSchedulesMost = 400;
constexpr std::uint64_t kSchedulesLeast = 20;
constexpr std::uint64_t kRankVisits = 2'000'000;  ///< Of all schedules, about.

constexpr std::uint32_t kNone = UINT32_MAX;

/// A gang, or a pack. Samples are places in the problem's vectors.
struct Job {
  std::uint32_t degree = 1;
  std::uint64_t time_ns = 0;
  std::uint64_t weight = 0;  ///< The heaviest are placed first.
  std::uint32_t long_sample = kNone;
  std::vector<std::uint32_t> shorts;
};

class SmallSearch {
 public:
  SmallSearch(const HdpCosts& costs, const RankLevels& levels, const HdpProblem& problem)
      : costs_(costs), levels_(levels), problem_(problem) {}

  std::optional<PlanDraft> run(std::uint64_t makespan_ns) {
    const std::uint64_t samples = problem_.longs.size() + problem_.shorts.size();
    const std::uint64_t visits = samples * costs_.shape().ranks + 1;
    const std::uint64_t schedules =
        std::clamp(kRankVisits / visits, kSchedulesLeast, kSchedulesMost);
    std::optional<std::uint64_t> best;
    for (std::uint64_t seed = 0; seed < schedules; ++seed) {
      if (makespan_ns == problem_.lower_bound_ns()) break;
      draw_jobs(seed);
      const std::uint64_t end = schedule(nullptr);
      if (end >= makespan_ns) continue;
      makespan_ns = end;
      best = seed;
    }
    if (!best) return std::nullopt;
    draw_jobs(*best);
    PlanDraft draft;
    draft.makespan_ns = schedule(&draft);
    return draft;
  }

 private:
  void draw_jobs(std::uint64_t seed);
  std::uint32_t draw_degree(const DegreeRange& range, std::uint64_t seed, Random& random) const;
  void add_packs(std::uint64_t seed, Random& random);
  void add_pack(std::vector<std::uint32_t> shorts);
  std::uint64_t schedule(PlanDraft* draft);
  std::uint64_t choose_members(std::uint32_t degree);
  std::uint64_t time_on_members(const Job& job) const;
  void write(const Job& job, const TaskDraft& times, PlanDraft& draft) const;

  const HdpCosts& costs_;
  const RankLevels& levels_;
  const HdpProblem& problem_;
  std::vector<Job> jobs_;
  std::vector<std::uint64_t> free_ns_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> members_;  // Of the job being placed; ascending.
};

/// The first seeds take the extremes.
std::uint32_t SmallSearch::draw_degree(const DegreeRange& range, std::uint64_t seed,
                                       Random& random) const {
  if (seed / 3 == 0) return range.min;
  if (seed / 3 == 1) return range.max;
  return range.min + static_cast<std::uint32_t>(random.below(range.max - range.min + 1));
}

void SmallSearch::draw_jobs(std::uint64_t seed) {
  Random random(seed);
  jobs_.clear();
  for (std::uint32_t i = 0; i < problem_.longs.size(); ++i) {
    const LongSample& sample = problem_.longs[i];
    const std::uint32_t degree = draw_degree(sample.degrees, seed, random);
    const std::uint64_t time = costs_.gang_ns(sample.attention_ns, sample.tokens, degree);
    jobs_.push_back({degree, time, time, i, {}});
  }
  add_packs(seed, random);
  if (seed < 6) return;
  // From small noise to any order.
  const std::uint64_t noise = std::uint64_t{1} << (seed % 8 * 2);
  for (Job& job : jobs_) job.weight = job.weight / 1024 * (1024 + random.below(noise));
}

/// First-fit, by turns up to the capacity, half of it, and every sample by itself.
void SmallSearch::add_packs(std::uint64_t seed, Random& random) {
  const std::uint32_t capacity = costs_.shape().capacity_tokens;
  const std::uint32_t limit = seed % 3 == 0 ? capacity : seed % 3 == 1 ? capacity / 2 : 0;
  std::vector<std::uint32_t> order(problem_.shorts.size());
  std::iota(order.begin(), order.end(), 0U);
  if (seed >= 6 && seed % 2 == 0) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  std::vector<std::vector<std::uint32_t>> packs;
  std::vector<std::uint32_t> sizes;
  for (const std::uint32_t item : order) {
    const std::uint32_t tokens = problem_.shorts[item].tokens;
    std::size_t pack = 0;
    while (pack < packs.size() && sizes[pack] + tokens > limit) ++pack;
    if (pack == packs.size()) {
      packs.emplace_back();
      sizes.push_back(0);
    }
    packs[pack].push_back(item);
    sizes[pack] += tokens;
  }
  for (auto& pack : packs) add_pack(std::move(pack));
}

void SmallSearch::add_pack(std::vector<std::uint32_t> shorts) {
  std::uint32_t tokens = 0;
  std::uint64_t time = 0;
  for (const std::uint32_t item : shorts) {
    tokens += problem_.shorts[item].tokens;
    time += problem_.shorts[item].attention_ns;
  }
  time += costs_.rest_ns(tokens);
  jobs_.push_back({1, time, time, kNone, std::move(shorts)});
}

void SmallSearch::write(const Job& job, const TaskDraft& times, PlanDraft& draft) const {
  TaskDraft task = times;
  task.members.begin = static_cast<std::uint32_t>(draft.members.size());
  task.samples.begin = static_cast<std::uint32_t>(draft.samples.size());
  for (const std::uint32_t rank : members_) draft.members.emplace_back(rank);
  if (job.long_sample != kNone) {
    const LongSample& sample = problem_.longs[job.long_sample];
    draft.samples.emplace_back(sample.row);
    task.offload = costs_.offload((sample.tokens + job.degree - 1) / job.degree);
  }
  for (const std::uint32_t item : job.shorts) draft.samples.emplace_back(problem_.shorts[item].row);
  task.members.end = static_cast<std::uint32_t>(draft.members.size());
  task.samples.end = static_cast<std::uint32_t>(draft.samples.size());
  draft.tasks.push_back(task);
}

/// Fills members_ in, and returns when they all are free.
std::uint64_t SmallSearch::choose_members(std::uint32_t degree) {
  const auto last = order_.begin() + degree - 1;
  std::ranges::nth_element(order_, last, {}, [this](std::uint32_t rank) {
    return std::make_tuple(free_ns_[rank], rank);
  });
  const std::uint64_t start = free_ns_[*last];
  members_.assign(order_.begin(), last + 1);
  std::ranges::sort(members_);
  if (degree == 1 || levels_.joining(members_.front(), members_.back()) == 0) return start;
  // Any others that are free by then do as well.
  std::uint32_t island = kNone;
  std::uint32_t found = 0;
  for (std::uint32_t rank = 0; rank < free_ns_.size(); ++rank) {
    const std::uint32_t of = levels_.group_of(0, rank);
    if (of != island) found = 0;
    island = of;
    if (free_ns_[rank] > start || ++found < degree) continue;
    members_.clear();
    for (; found > 0; --rank) {
      if (free_ns_[rank] > start) continue;
      members_.push_back(rank);
      --found;
    }
    std::ranges::reverse(members_);
    break;
  }
  return start;
}

std::uint64_t SmallSearch::time_on_members(const Job& job) const {
  if (job.long_sample == kNone || costs_.shape().links.empty()) return job.time_ns;
  const LongSample& sample = problem_.longs[job.long_sample];
  return costs_.gang_ns(sample.attention_ns, sample.tokens, job.degree,
                        levels_.joining(members_.front(), members_.back()));
}

/// When all jobs end, the heaviest placed first. Fills `draft` in, if there is one.
std::uint64_t SmallSearch::schedule(PlanDraft* draft) {
  std::vector<std::size_t> jobs(jobs_.size());
  std::iota(jobs.begin(), jobs.end(), std::size_t{0});
  std::ranges::stable_sort(jobs, std::greater<>(),
                           [this](std::size_t i) { return jobs_[i].weight; });
  free_ns_.assign(costs_.shape().ranks, 0);
  order_.resize(costs_.shape().ranks);
  std::iota(order_.begin(), order_.end(), 0U);
  std::uint64_t end = 0;
  for (const std::size_t i : jobs) {
    const Job& job = jobs_[i];
    TaskDraft times;
    times.start_ns = choose_members(job.degree);
    times.time_ns = time_on_members(job);
    for (const std::uint32_t rank : members_) free_ns_[rank] = times.start_ns + times.time_ns;
    end = std::max(end, times.start_ns + times.time_ns);
    if (draft != nullptr) write(job, times, *draft);
  }
  return end;
}

}  // namespace

std::optional<PlanDraft> search_small(const HdpCosts& costs, const RankLevels& levels,
                                      const HdpProblem& problem, std::uint64_t makespan_ns) {
  return SmallSearch(costs, levels, problem).run(makespan_ns);
}

}  // namespace batchloom::planning
