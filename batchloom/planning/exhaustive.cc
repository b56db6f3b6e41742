// SPDX-License-Identifier: Apache-2.0
//  1. The short samples are parted into packs in every way.
//  2. The tasks, long samples and packs, are placed in every order, the long ones on every number
//     of ranks that is worth it. Each takes the ranks that are free first, which leaves out no
//     schedule: take the tasks of any schedule in the order in which they begin; to those that
//     follow, all ranks that are free by then are alike.
//  3. A branch ends where what is left, spread evenly, would end no earlier than the best known.
#include "batchloom/planning/exhaustive.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/planning/hdp_problem.h"

namespace batchloom::planning {
namespace {

class Exhaustive {
 public:
  Exhaustive(const HdpCosts& costs, const HdpProblem& problem, std::uint64_t known_ns)
      : costs_(costs), problem_(problem), best_ns_(known_ns) {
    for (const LongSample& sample : problem.longs) {
      const auto choices = problem.choices_of(sample);
      Task task{{choices.begin(), choices.end()}};
      for (const DegreeChoice& choice : choices) {
        task.least_work_ns = std::min(task.least_work_ns, choice.degree * choice.time_ns);
      }
      longs_.push_back(std::move(task));
    }
  }

  std::uint64_t run() {
    part(0);
    return best_ns_;
  }

 private:
  struct Task {
    std::vector<DegreeChoice> choices;
    std::uint64_t least_work_ns = UINT64_MAX;

    friend bool operator==(const Task&, const Task&) = default;
  };
  struct Pack {
    std::uint32_t tokens = 0;
    std::uint64_t attention_ns = 0;
  };

  /// Puts short sample `item` into each pack that there is, or into a new one.
  void part(std::size_t item) {
    if (item == problem_.shorts.size()) {
      place_all();
      return;
    }
    const ShortSample& sample = problem_.shorts[item];
    for (std::size_t i = 0; i < packs_.size(); ++i) {
      if (packs_[i].tokens + sample.tokens > costs_.shape().capacity_tokens) continue;
      const Pack before = packs_[i];
      packs_[i] = {before.tokens + sample.tokens, before.attention_ns + sample.attention_ns};
      part(item + 1);
      packs_[i] = before;
    }
    packs_.push_back({sample.tokens, sample.attention_ns});
    part(item + 1);
    packs_.pop_back();
  }

  void place_all() {
    tasks_ = longs_;
    for (const Pack& pack : packs_) {
      const std::uint64_t time_ns = pack.attention_ns + costs_.rest_ns(pack.tokens);
      tasks_.push_back({{{1, time_ns}}, time_ns});
    }
    std::uint64_t work_ns = 0;
    for (const Task& task : tasks_) work_ns += task.least_work_ns;
    place(std::vector<std::uint64_t>(costs_.shape().ranks, 0), 0, work_ns);
  }

  /// `free_ns` ascends; tasks_[placed] and those behind are left, and need work_ns of all ranks.
  void place(const std::vector<std::uint64_t>& free_ns, std::size_t placed, std::uint64_t work_ns) {
    if (free_ns.back() >= best_ns_) return;
    if (placed == tasks_.size()) {
      best_ns_ = free_ns.back();
      return;
    }
    const std::uint64_t used_ns = std::accumulate(free_ns.begin(), free_ns.end(), std::uint64_t{0});
    if ((used_ns + work_ns + free_ns.size() - 1) / free_ns.size() >= best_ns_) return;
    for (std::size_t i = placed; i < tasks_.size(); ++i) {
      const auto begin = tasks_.begin() + static_cast<std::ptrdiff_t>(placed);
      const auto at = tasks_.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(begin, at, *at) != at) continue;  // Its like was tried here.
      std::swap(tasks_[placed], tasks_[i]);
      const Task task = tasks_[placed];
      for (const DegreeChoice& choice : task.choices) {
        std::vector<std::uint64_t> then = free_ns;
        std::fill_n(then.begin(), choice.degree, free_ns[choice.degree - 1] + choice.time_ns);
        std::ranges::sort(then);
        place(then, placed + 1, work_ns - task.least_work_ns);
      }
      std::swap(tasks_[placed], tasks_[i]);
    }
  }

  const HdpCosts& costs_;
  const HdpProblem& problem_;
  std::vector<Task> longs_;
  std::vector<Pack> packs_;
  std::vector<Task> tasks_;
  std::uint64_t best_ns_;
};

}  // namespace

Result<std::uint64_t> best_makespan_ns(const HdpCosts& costs, std::span<const std::uint32_t> tokens,
                                       std::uint64_t known_ns) {
  BL_ASSIGN_OR_RETURN(const HdpProblem problem, make_problem(costs, tokens, [](std::uint32_t row) {
                        return std::to_string(row);
                      }));
  return Exhaustive(costs, problem, known_ns).run();
}

}  // namespace batchloom::planning
