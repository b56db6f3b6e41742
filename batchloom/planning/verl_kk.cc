// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <queue>
#include <utility>

#include "batchloom/planning/balance.h"
#include "batchloom/planning/baselines.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/task_list.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

__extension__ using Wide = unsigned __int128;

using VerlRows = std::vector<std::uint32_t>;

constexpr std::uint64_t kLinearWeight = 24'576;  ///< 6 x hidden size of a 7B model.

/// By row, 24,576 x L + L^2, all shifted so that no sum overflows, and at least 1.
std::vector<std::uint64_t> workloads_of(const std::vector<model::PlanSample>& samples) {
  const auto exact = [](const model::PlanSample& sample) {
    return Wide{sample.tokens} * (kLinearWeight + sample.tokens);
  };
  Wide sum = 0;
  for (const model::PlanSample& sample : samples) sum += exact(sample);
  int shift = 0;
  while (sum >> shift > INT64_MAX) ++shift;
  std::vector<std::uint64_t> workloads;
  for (const model::PlanSample& sample : samples) {
    workloads.push_back(
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact(sample) >> shift)));
  }
  return workloads;
}

/// Differencing into parts of equally many items, up to one: partial solutions have one item, or a
/// place without any, per part.
class EqualParts {
 public:
  EqualParts(const std::vector<std::uint64_t>& costs, std::uint32_t parts)
      : costs_(costs), parts_(parts) {}

  std::vector<VerlRows> run() {
    seed();
    while (queue_.size() > 1) {
      const std::size_t a = pop();
      const std::size_t b = pop();
      merge(partials_[a], partials_[b]);
      push(a);
    }
    std::vector<VerlRows> result(parts_);
    if (queue_.empty()) return result;
    const Partial& last = partials_[pop()];
    for (std::uint32_t part = 0; part < parts_; ++part) {
      result[part] = last[part].rows;
      std::ranges::sort(result[part]);
    }
    return result;
  }

 private:
  struct Part {
    std::uint64_t cost = 0;
    VerlRows rows;
  };
  using Partial = std::vector<Part>;  ///< By cost, descending.

  /// By ascending cost, so many at a time; the first has places that stay empty.
  void seed() {
    VerlRows rows(costs_.size());
    for (std::uint32_t row = 0; row < rows.size(); ++row) rows[row] = row;
    std::ranges::stable_sort(rows, {}, [this](std::uint32_t row) { return costs_[row]; });
    const std::size_t empty = (parts_ - rows.size() % parts_) % parts_;
    std::size_t next = 0;
    while (next < rows.size()) {
      Partial partial(parts_);
      for (std::size_t place = next == 0 ? empty : 0; place < parts_; ++place, ++next) {
        partial[place] = {costs_[rows[next]], {rows[next]}};
      }
      order(partial);
      partials_.push_back(std::move(partial));
      push(partials_.size() - 1);
    }
  }

  static void order(Partial& partial) {
    std::ranges::stable_sort(partial, std::greater<>(), &Part::cost);
  }

  /// The dearest part of one with the cheapest of the other.
  static void merge(Partial& into, Partial& from) {
    for (std::size_t i = 0; i < into.size(); ++i) {
      Part& other = from[from.size() - 1 - i];
      into[i].cost += other.cost;
      into[i].rows.insert(into[i].rows.end(), other.rows.begin(), other.rows.end());
    }
    from = {};
    order(into);
  }

  /// Those that differ most come first; of equal ones the dearer, then the earlier.
  void push(std::size_t place) {
    const Partial& partial = partials_[place];
    queue_.push(
        {partial.front().cost - partial.back().cost, partial.front().cost, SIZE_MAX - place});
  }
  std::size_t pop() {
    const std::size_t place = SIZE_MAX - queue_.top().inverse_place;
    queue_.pop();
    return place;
  }

  struct Queued {
    std::uint64_t spread;
    std::uint64_t dearest;
    std::size_t inverse_place;
    auto operator<=>(const Queued&) const = default;
  };

  const std::vector<std::uint64_t>& costs_;
  const std::uint32_t parts_;
  std::vector<Partial> partials_;
  std::priority_queue<Queued> queue_;
};

/// Micro-batches of each group, the same number in all.
class VerlMicroBatches {
 public:
  VerlMicroBatches(const std::vector<model::PlanSample>& samples,
                   const std::vector<std::uint64_t>& workloads, std::uint64_t room)
      : samples_(samples), workloads_(workloads), room_(room) {}

  std::vector<std::vector<VerlRows>> split(const std::vector<VerlRows>& groups) const {
    std::size_t count = 0;
    for (const VerlRows& rows : groups) {
      count = std::max<std::size_t>(count, (tokens_of(rows) + room_ - 1) / room_);
    }
    // Ends: with a micro-batch for each sample, all fit.
    while (!std::ranges::all_of(groups, [&](const VerlRows& rows) { return fits(rows, count); })) {
      count += 1 + count / 32;
    }
    std::vector<std::vector<VerlRows>> result;
    for (const VerlRows& rows : groups) result.push_back(in_order(parts(rows, count)));
    return result;
  }

 private:
  std::uint64_t tokens_of(const VerlRows& rows) const {
    std::uint64_t tokens = 0;
    for (const std::uint32_t row : rows) tokens += samples_[row].tokens;
    return tokens;
  }
  std::uint64_t work_of(const VerlRows& rows) const {
    std::uint64_t work = 0;
    for (const std::uint32_t row : rows) work += workloads_[row];
    return work;
  }

  std::vector<VerlRows> parts(const VerlRows& rows, std::size_t count) const {
    std::vector<VerlRows> result(count);
    if (rows.empty()) return result;
    std::vector<std::uint64_t> costs;
    for (const std::uint32_t row : rows) costs.push_back(workloads_[row]);
    const Buckets of = balance_karmarkar_karp(costs, static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < rows.size(); ++i) result[of[i]].push_back(rows[i]);
    return result;
  }

  bool fits(const VerlRows& rows, std::size_t count) const {
    return std::ranges::all_of(parts(rows, count),
                               [this](const VerlRows& part) { return tokens_of(part) <= room_; });
  }

  /// By descending work, every other one to the front: the lightest at both ends.
  std::vector<VerlRows> in_order(std::vector<VerlRows> parts) const {
    std::ranges::stable_sort(parts, std::greater<>(),
                             [this](const VerlRows& part) { return work_of(part); });
    std::vector<VerlRows> result;
    for (std::size_t i = 0; i < parts.size(); i += 2) result.push_back(parts[i]);
    std::ranges::reverse(result);
    for (std::size_t i = 1; i < parts.size(); i += 2) result.push_back(parts[i]);
    return result;
  }

  const std::vector<model::PlanSample>& samples_;
  const std::vector<std::uint64_t>& workloads_;
  const std::uint64_t room_;
};

}  // namespace

Result<model::StepPlan> plan_verl_kk(const StrategyInputs& inputs,
                                     std::vector<model::PlanSample> samples) {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  BL_ASSIGN_OR_RETURN(const HdpCosts costs,
                      HdpCosts::create(inputs.costs, {.ranks = inputs.topology.hdp_size(),
                                                      .capacity_tokens = inputs.capacity_tokens}));
  const auto groups = fixed_groups(inputs);
  const std::uint64_t room = groups[0].size() * std::uint64_t{inputs.capacity_tokens};
  BL_RETURN_IF_ERROR(check_fits_groups(inputs, groups[0].size(), samples));
  const std::vector<std::uint64_t> workloads = workloads_of(samples);
  const auto parts = EqualParts(workloads, static_cast<std::uint32_t>(groups.size())).run();
  const auto batches = VerlMicroBatches(samples, workloads, room).split(parts);
  TaskList tasks(costs, samples);
  for (std::size_t slot = 0; slot < batches[0].size(); ++slot) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      tasks.add(groups[group], batches[group][slot]);
    }
  }
  PlanDraft draft = std::move(tasks).take();
  return make_timed_plan(inputs.topology, "verl_kk", std::move(samples), std::move(draft),
                         inputs.costs);
}

}  // namespace batchloom::planning
