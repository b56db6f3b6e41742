// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/naive_deal.h"

#include <algorithm>
#include <queue>
#include <set>
#include <utility>

namespace batchloom::planning {
namespace {

struct NaiveTask {
  std::uint32_t degree = 1;
  std::uint32_t tokens = 0;
  std::uint64_t attention_ns = 0;
  std::uint64_t start_ns = 0;
  std::vector<std::uint32_t> rows;
};

class NaiveDeal {
 public:
  NaiveDeal(const HdpCosts& costs, const RankLevels& levels, const HdpProblem& problem)
      : costs_(costs), levels_(levels) {
    make_tasks(problem);
  }

  /// When all have ended that are dealt in turn. Fills in when each begins.
  std::uint64_t deal() {
    const std::uint32_t ranks = costs_.shape().ranks;
    std::vector<std::uint64_t> free_ns(ranks, 0);
    std::uint32_t next = 0;
    for (NaiveTask& task : tasks_) {
      for (std::uint32_t i = 0; i < task.degree; ++i) {
        task.start_ns = std::max(task.start_ns, free_ns[(next + i) % ranks]);
      }
      const std::uint64_t end_ns = task.start_ns + time_ns(task, 0, task.degree - 1);
      for (std::uint32_t i = 0; i < task.degree; ++i) free_ns[(next + i) % ranks] = end_ns;
      next = (next + task.degree) % ranks;
    }
    return std::ranges::max(free_ns);
  }

  /// To the ranks that are free first, by start.
  PlanDraft draft() {
    std::ranges::stable_sort(tasks_, {}, &NaiveTask::start_ns);
    using Free = std::pair<std::uint64_t, std::uint32_t>;  // When, and the rank.
    std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
    for (std::uint32_t rank = 0; rank < costs_.shape().ranks; ++rank) free.emplace(0, rank);
    PlanDraft draft;
    for (const NaiveTask& task : tasks_) {
      std::vector<std::uint32_t> members;
      std::uint64_t start_ns = 0;
      for (std::uint32_t i = 0; i < task.degree; ++i) {
        start_ns = free.top().first;
        members.push_back(free.top().second);
        free.pop();
      }
      std::ranges::sort(members);
      const std::uint64_t time = time_ns(task, members.front(), members.back());
      for (const std::uint32_t rank : members) free.emplace(start_ns + time, rank);
      draft.makespan_ns = std::max(draft.makespan_ns, start_ns + time);
      write(task, start_ns, time, members, draft);
    }
    return draft;
  }

 private:
  void make_tasks(const HdpProblem& problem) {
    struct Row {
      const LongSample* longer = nullptr;
      const ShortSample* shorter = nullptr;
    };
    std::vector<Row> rows(problem.longs.size() + problem.shorts.size());
    for (const LongSample& sample : problem.longs) rows[sample.row].longer = &sample;
    for (const ShortSample& sample : problem.shorts) rows[sample.row].shorter = &sample;
    std::set<std::pair<std::uint32_t, std::size_t>> packs;  // By their room.
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      if (const LongSample* sample = rows[row].longer) {
        tasks_.push_back({sample->degrees.min, sample->tokens, sample->attention_ns, 0, {row}});
        continue;
      }
      const ShortSample& sample = *rows[row].shorter;
      const auto found = packs.lower_bound({sample.tokens, 0});
      const std::size_t pack = found == packs.end() ? tasks_.size() : found->second;
      if (found == packs.end()) {
        tasks_.emplace_back();
      } else {
        packs.erase(found);
      }
      NaiveTask& task = tasks_[pack];
      task.tokens += sample.tokens;
      task.attention_ns += sample.attention_ns;
      task.rows.push_back(row);
      packs.emplace(costs_.shape().capacity_tokens - task.tokens, pack);
    }
  }

  std::uint64_t time_ns(const NaiveTask& task, std::uint32_t first, std::uint32_t last) const {
    return costs_.gang_ns(task.attention_ns, task.tokens, task.degree,
                          levels_.joining(first, last));
  }

  void write(const NaiveTask& from, std::uint64_t start_ns, std::uint64_t time,
             const std::vector<std::uint32_t>& members, PlanDraft& draft) const {
    TaskDraft task{.start_ns = start_ns, .time_ns = time};
    const std::uint32_t share = (from.tokens + from.degree - 1) / from.degree;
    task.offload = costs_.offload(share);
    task.members.begin = static_cast<std::uint32_t>(draft.members.size());
    for (const std::uint32_t rank : members) draft.members.emplace_back(rank);
    task.members.end = static_cast<std::uint32_t>(draft.members.size());
    task.samples.begin = static_cast<std::uint32_t>(draft.samples.size());
    for (const std::uint32_t row : from.rows) draft.samples.emplace_back(row);
    task.samples.end = static_cast<std::uint32_t>(draft.samples.size());
    draft.tasks.push_back(task);
  }

  const HdpCosts& costs_;
  const RankLevels& levels_;
  std::vector<NaiveTask> tasks_;
};

}  // namespace

std::optional<PlanDraft> deal_naively(const HdpCosts& costs, const RankLevels& levels,
                                      const HdpProblem& problem, std::uint64_t makespan_ns) {
  NaiveDeal naive(costs, levels, problem);
  if (naive.deal() >= makespan_ns) return std::nullopt;
  PlanDraft draft = naive.draft();
  if (draft.makespan_ns >= makespan_ns) return std::nullopt;
  return draft;
}

}  // namespace batchloom::planning
