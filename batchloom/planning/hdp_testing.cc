// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_testing.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/hdp_problem.h"

namespace batchloom::planning {
namespace {

/// Every schedule: the short samples are parted into packs in every way, and the tasks take their
/// ranks in every order, each on every set of ranks that it may run on. Any schedule is one of
/// these, since its tasks may be taken in the order in which they begin.
class Exhaustive {
 public:
  Exhaustive(const HdpCosts& costs, const HdpProblem& problem)
      : costs_(costs), problem_(problem), best_ns_(UINT64_MAX) {
    for (const LongSample& sample : problem.longs) {
      Task task;
      for (std::uint32_t d = sample.degrees.min; d <= sample.degrees.max; ++d) {
        task.times_ns.push_back(costs.gang_ns(sample.attention_ns, sample.tokens, d));
      }
      task.degree = sample.degrees.min;
      longs_.push_back(task);
    }
  }

  std::uint64_t run() {
    part(0);
    return best_ns_;
  }

 private:
  struct Task {
    std::uint32_t degree = 1;                  ///< The smallest.
    std::vector<std::uint64_t> times_ns = {};  ///< By degree, from there on.
  };
  struct Pack {
    std::uint32_t tokens = 0;
    std::uint64_t attention_ns = 0;
  };

  /// Puts short sample `item` into each pack that there is, or into a new one.
  void part(std::size_t item) {
    if (item == problem_.shorts.size()) {
      tasks_ = longs_;
      for (const Pack& pack : packs_) {
        tasks_.push_back({1, {pack.attention_ns + costs_.rest_ns(pack.tokens)}});
      }
      free_ns_.assign(costs_.shape().ranks, 0);
      place((1U << tasks_.size()) - 1, 0);
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

  void place(std::uint32_t left, std::uint64_t end_ns) {
    if (end_ns >= best_ns_) return;
    if (left == 0) {
      best_ns_ = end_ns;
      return;
    }
    const std::uint32_t sets = 1U << costs_.shape().ranks;
    for (std::uint32_t i = 0; i < tasks_.size(); ++i) {
      if ((left >> i & 1) == 0) continue;
      for (std::uint32_t set = 1; set < sets; ++set) {
        const auto degree = static_cast<std::uint32_t>(std::popcount(set));
        if (degree < tasks_[i].degree) continue;
        if (degree - tasks_[i].degree >= tasks_[i].times_ns.size()) continue;
        const auto before = free_ns_;
        const std::uint64_t time_ns = tasks_[i].times_ns[degree - tasks_[i].degree];
        std::uint64_t start_ns = 0;
        for (std::uint32_t rank = 0; rank < free_ns_.size(); ++rank) {
          if (set >> rank & 1) start_ns = std::max(start_ns, free_ns_[rank]);
        }
        for (std::uint32_t rank = 0; rank < free_ns_.size(); ++rank) {
          if (set >> rank & 1) free_ns_[rank] = start_ns + time_ns;
        }
        place(left & ~(1U << i), std::max(end_ns, start_ns + time_ns));
        free_ns_ = before;
      }
    }
  }

  const HdpCosts& costs_;
  const HdpProblem& problem_;
  std::vector<Task> longs_;
  std::vector<Pack> packs_;
  std::vector<Task> tasks_;
  std::vector<std::uint64_t> free_ns_;
  std::uint64_t best_ns_;
};

}  // namespace

HdpPlanner planner_for(std::uint32_t ranks, const HdpOptions& options) {
  return HdpPlanner::create(
             builtin_cost_model("h200-llama7b").value(),
             model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}).value(),
             options)
      .value();
}

std::uint64_t replay_ns(const model::StepPlan& plan) {
  std::vector<std::uint64_t> free_ns(plan.ranks.size(), 0);
  for (const model::Task& task : plan.tasks) {
    std::uint64_t start_ns = 0;
    for (const model::HdpRank rank : plan.members_of(task)) {
      start_ns = std::max(start_ns, free_ns[rank.value]);
    }
    for (const model::HdpRank rank : plan.members_of(task)) {
      free_ns[rank.value] = start_ns + task.cost_ns;
    }
  }
  return free_ns.empty() ? 0 : std::ranges::max(free_ns);
}

std::uint64_t best_makespan_ns(const CostModel& model, const HdpShape& shape,
                               const std::vector<std::uint32_t>& tokens) {
  const HdpCosts costs = HdpCosts::create(model, shape).value();
  const HdpProblem problem =
      make_problem(costs, tokens, [](std::uint32_t row) { return std::to_string(row); }).value();
  return Exhaustive(costs, problem).run();
}

}  // namespace batchloom::planning
