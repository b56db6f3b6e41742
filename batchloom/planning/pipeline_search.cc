// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "batchloom/base/random.h"

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kMovesMost = 500;
constexpr std::uint64_t kMovesLeast = 20;
constexpr std::uint64_t kVisits = 4'000'000;  ///< Of ranks and events, of all moves, about.
constexpr int kStarts = 4;

constexpr std::uint32_t kNoSample = UINT32_MAX;

/// A gang, or a pack. Samples are places in the problem's vectors.
struct PipelineJob {
  std::uint32_t long_sample = kNoSample;
  std::size_t choice = 0;  ///< Of a long sample's.
  std::vector<std::uint32_t> shorts;
};

using JobOrder = std::vector<PipelineJob>;

class PipelineSearch {
 public:
  PipelineSearch(const PipelineCosts& pipeline, const HdpCosts& costs, const HdpProblem& problem)
      : pipeline_(pipeline), costs_(costs), problem_(problem), ranks_(costs.shape().ranks) {}

  std::optional<HdpPipelinePlan> run(std::uint64_t makespan_ns) {
    const std::uint64_t samples = problem_.longs.size() + problem_.shorts.size();
    const std::uint64_t visits = (samples + 1) * ranks_ * (2 * pipeline_.stages() + 4);
    const std::uint64_t moves = std::clamp(kVisits / visits, kMovesLeast, kMovesMost);
    for (int start = 0; start < kStarts; ++start) {
      JobOrder schedule = first_schedule(start);
      std::uint64_t end_ns = evaluate(schedule).second;
      for (std::uint64_t move = 0; move < moves; ++move) {
        JobOrder changed = schedule;
        change(changed);
        const std::uint64_t changed_ns = evaluate(changed).second;
        if (changed_ns > end_ns) continue;
        schedule = std::move(changed);
        end_ns = changed_ns;
      }
      if (end_ns >= makespan_ns) continue;
      makespan_ns = end_ns;
      best_.emplace(HdpPipelinePlan{evaluate(schedule).first, end_ns});
    }
    return std::move(best_);
  }

 private:
  /// By descending time or, every other start, with half of the tasks before the longest. Long
  /// samples on as many ranks as they can use or, for later starts, on as few.
  JobOrder first_schedule(int start) const {
    JobOrder schedule;
    for (std::uint32_t i = 0; i < problem_.longs.size(); ++i) {
      const std::size_t choices = problem_.choices_of(problem_.longs[i]).size();
      schedule.push_back(
          {.long_sample = i, .choice = start < kStarts / 2 ? choices - 1 : 0, .shorts = {}});
    }
    const std::size_t packs = schedule.size();
    for (std::uint32_t i = 0; i < problem_.shorts.size(); ++i) add_short(schedule, packs, i);
    std::ranges::stable_sort(schedule, std::greater<>(),
                             [this](const PipelineJob& job) { return phases_of(job).total_ns(); });
    if (start % 2 == 0) return schedule;
    JobOrder up, down;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      (i % 2 == 0 ? down : up).push_back(std::move(schedule[i]));
    }
    std::ranges::reverse(up);
    std::ranges::move(down, std::back_inserter(up));
    return up;
  }

  /// To the first pack, from place `packs` on, that has room for it.
  void add_short(JobOrder& schedule, std::size_t packs, std::uint32_t item) const {
    for (std::size_t i = packs; i < schedule.size(); ++i) {
      if (!has_room(schedule[i], item)) continue;
      schedule[i].shorts.push_back(item);
      return;
    }
    schedule.push_back({.shorts = {item}});
  }

  bool has_room(const PipelineJob& job, std::uint32_t item) const {
    if (job.long_sample != kNoSample) return false;
    std::uint64_t tokens = problem_.shorts[item].tokens;
    for (const std::uint32_t other : job.shorts) tokens += problem_.shorts[other].tokens;
    return tokens <= costs_.shape().capacity_tokens;
  }

  void change(JobOrder& schedule) {
    const std::size_t a = random_.below(schedule.size());
    PipelineJob& job = schedule[a];
    const std::uint64_t kind = random_.below(3);
    if (kind == 0 && job.long_sample != kNoSample) {
      job.choice = random_.below(problem_.choices_of(problem_.longs[job.long_sample]).size());
    } else if (kind == 0) {
      move_short(schedule, a);
    } else if (kind == 1) {
      std::swap(job, schedule[random_.below(schedule.size())]);
    } else {
      const std::size_t b = random_.below(schedule.size());
      const auto begin = schedule.begin();
      const auto at = [begin](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
      if (a < b) {
        std::rotate(at(a), at(a + 1), at(b + 1));
      } else {
        std::rotate(at(b), at(a), at(a + 1));
      }
    }
  }

  /// To another pack, or to one of its own.
  void move_short(JobOrder& schedule, std::size_t from) {
    const std::size_t place = random_.below(schedule[from].shorts.size());
    const std::uint32_t item = schedule[from].shorts[place];
    const std::size_t to = random_.below(schedule.size() + 1);
    if (to == from || (to < schedule.size() && !has_room(schedule[to], item))) return;
    if (to == schedule.size()) schedule.emplace_back();
    schedule[to].shorts.push_back(item);
    auto& left = schedule[from].shorts;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(place));
    if (left.empty()) schedule.erase(schedule.begin() + static_cast<std::ptrdiff_t>(from));
  }

  PhaseTimes phases_of(const PipelineJob& job) const {
    if (job.long_sample != kNoSample) {
      const LongSample& sample = problem_.longs[job.long_sample];
      return costs_.gang_phases(sample.attention_ns, sample.tokens, degree_of(job));
    }
    std::uint64_t attention_ns = 0;
    std::uint64_t attention_forward_ns = 0;
    std::uint32_t tokens = 0;
    for (const std::uint32_t item : job.shorts) {
      attention_ns += problem_.shorts[item].attention_ns;
      attention_forward_ns += pipeline_.attention_forward_ns(problem_.shorts[item].tokens);
      tokens += problem_.shorts[item].tokens;
    }
    return pipeline_.pack(costs_, attention_ns, attention_forward_ns, tokens);
  }

  std::uint32_t degree_of(const PipelineJob& job) const {
    if (job.long_sample == kNoSample) return 1;
    return problem_.choices_of(problem_.longs[job.long_sample])[job.choice].degree;
  }

  std::pair<PipelineTasks, std::uint64_t> evaluate(const JobOrder& schedule) {
    PipelineTasks tasks(ranks_);
    std::vector<std::uint64_t> load_ns(ranks_, 0);
    std::vector<std::uint32_t> order(ranks_);
    std::vector<model::HdpRank> members;
    std::vector<model::SampleIndex> rows;
    for (const PipelineJob& job : schedule) {
      const std::uint32_t degree = degree_of(job);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::partial_sort(order, order.begin() + degree,
                                [&](std::uint32_t a, std::uint32_t b) {
                                  return std::pair(load_ns[a], a) < std::pair(load_ns[b], b);
                                });
      const std::uint64_t begin_ns = load_ns[order[degree - 1]];
      std::sort(order.begin(), order.begin() + degree);
      const PhaseTimes phases = phases_of(job);
      members.clear();
      for (std::uint32_t i = 0; i < degree; ++i) {
        members.emplace_back(order[i]);
        load_ns[order[i]] = begin_ns + phases.total_ns();
      }
      rows.clear();
      for (const std::uint32_t item : job.shorts) rows.emplace_back(problem_.shorts[item].row);
      model::OffloadRatio offload;
      if (job.long_sample != kNoSample) {
        const LongSample& sample = problem_.longs[job.long_sample];
        rows.emplace_back(sample.row);
        offload = costs_.offload((sample.tokens - 1) / degree + 1);
      }
      tasks.add(members, rows, phases, offload);
    }
    const std::uint64_t end_ns = tasks.ends(pipeline_.stages()).makespan_ns;
    return {std::move(tasks), end_ns};
  }

  const PipelineCosts& pipeline_;
  const HdpCosts& costs_;
  const HdpProblem& problem_;
  const std::uint32_t ranks_;
  Random random_ = Random(1);
  std::optional<HdpPipelinePlan> best_;
};

}  // namespace

std::optional<HdpPipelinePlan> search_pipelines(const PipelineCosts& pipeline,
                                                const HdpCosts& costs, const HdpProblem& problem,
                                                std::uint64_t makespan_ns) {
  if (problem.longs.empty() && problem.shorts.empty()) return std::nullopt;
  return PipelineSearch(pipeline, costs, problem).run(makespan_ns);
}

}  // namespace batchloom::planning
