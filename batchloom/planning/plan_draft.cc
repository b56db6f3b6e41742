// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_draft.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/radix_sort.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::Piece;
using model::StepPlan;

class PlanMaker {
 public:
  PlanMaker(StepPlan& plan, const PlanDraft& draft) : plan_(plan), draft_(draft) {}

  void make() {
    tokens_.reserve(plan_.samples.size());
    for (const model::PlanSample& sample : plan_.samples) {
      tokens_.push_back(sample.tokens);
      plan_.global_valid_labels += sample.valid_labels;
    }
    add_tasks();
    deal_micro_batches();
    add_pieces();
  }

 private:
  /// Places of draft_.tasks.
  std::vector<std::uint32_t> order_of_tasks() const {
    const std::span<const TaskDraft> tasks = draft_.tasks;
    std::vector<std::uint32_t> order(tasks.size());
    std::iota(order.begin(), order.end(), 0U);
    std::uint64_t longest_ns = 0;
    for (const TaskDraft& task : tasks) longest_ns = std::max(longest_ns, task.time_ns);
    radix_sort(order, [&](std::uint32_t place) {
      const model::IndexRange of = tasks[place].samples;
      return of.size() == 0 ? tokens_.size() : draft_.samples[of.begin].value;
    });
    radix_sort(order, [&](std::uint32_t place) { return longest_ns - tasks[place].time_ns; });
    radix_sort(order, [&](std::uint32_t place) { return tasks[place].start_ns; });
    return order;
  }

  void add_tasks() {
    plan_.tasks.reserve(draft_.tasks.size());
    plan_.members.reserve(draft_.members.size());
    plan_.events.reserve(2 * draft_.tasks.size());
    samples_.reserve(draft_.tasks.size());
    for (const std::uint32_t place : order_of_tasks()) {
      const TaskDraft& task = draft_.tasks[place];
      const model::TaskIndex index(static_cast<std::uint32_t>(plan_.tasks.size()));
      const auto begin = static_cast<std::uint32_t>(plan_.members.size());
      const auto first = draft_.members.begin() + task.members.begin;
      plan_.members.insert(plan_.members.end(), first, first + task.members.size());
      plan_.tasks.push_back({.members = {begin, begin + task.members.size()},
                             .offload = task.offload,
                             .cost_ns = task.time_ns});
      plan_.events.push_back({index, model::Phase::kForward});
      plan_.events.push_back({index, model::Phase::kBackward});
      samples_.push_back(task.samples);
    }
  }

  /// Each rank's, in the order of the tasks; their pieces come later.
  void deal_micro_batches() {
    std::vector<std::uint32_t> next(plan_.ranks.size() + 1, 0);
    for (const HdpRank rank : plan_.members) ++next[rank.value + 1];
    for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
      next[rank + 1] += next[rank];
      plan_.ranks[rank] = {next[rank], next[rank + 1]};
    }
    plan_.micro_batches.resize(plan_.members.size());
    place_in_ring_.resize(plan_.members.size());
    for (std::uint32_t task = 0; task < plan_.tasks.size(); ++task) {
      const auto members = plan_.members_of(plan_.tasks[task]);
      for (std::uint32_t i = 0; i < members.size(); ++i) {
        const std::uint32_t place = next[members[i].value]++;
        plan_.micro_batches[place].task = model::TaskIndex(task);
        place_in_ring_[place] = i;
      }
    }
  }

  /// Members, in a cycle of `degree`, that get a token that a sample's chunks leave over: from
  /// `first` on, `fronts` of them in the front chunk, and `backs` in the back one as well.
  struct LongerChunks {
    std::uint32_t degree;
    std::uint32_t first;
    std::uint32_t fronts;
    std::uint32_t backs;

    /// How many of `count` members from `first` on are below `place`.
    std::uint32_t below(std::uint32_t place, std::uint32_t count) const {
      const std::uint32_t end = first + count;
      const std::uint32_t wrapped = end > degree ? end - degree : 0;
      const std::uint32_t straight = std::clamp(place, first, std::min(end, degree)) - first;
      return std::min(place, wrapped) + straight;
    }
    /// How many of all chunks before `chunk` are longer.
    std::uint32_t before(std::uint32_t chunk) const {
      if (chunk <= degree) return below(chunk, fronts);
      return fronts + backs - below(2 * degree - chunk, backs);
    }
  };

  void add_pieces() {
    plan_.pieces.reserve(draft_.samples.size() + 2 * plan_.members.size());
    for (std::size_t i = 0; i < plan_.micro_batches.size(); ++i) {
      model::MicroBatch& micro_batch = plan_.micro_batches[i];
      const auto begin = static_cast<std::uint32_t>(plan_.pieces.size());
      const std::uint32_t degree = plan_.tasks[micro_batch.task.value].members.size();
      const std::span<const model::SampleIndex> samples = samples_of(micro_batch.task);
      if (degree == 1) {
        for (const model::SampleIndex sample : samples) {
          plan_.pieces.push_back({sample, 0, tokens_[sample.value]});
        }
      } else {
        add_shares(samples, place_in_ring_[i], degree);
      }
      micro_batch.pieces = {begin, static_cast<std::uint32_t>(plan_.pieces.size())};
    }
  }

  void add_shares(std::span<const model::SampleIndex> samples, std::uint32_t place,
                  std::uint32_t degree) {
    std::uint32_t first = 0;  // The member that the next token left over goes to.
    for (const model::SampleIndex sample : samples) {
      add_chunks(sample, place, degree, first);
      first = (first + tokens_[sample.value]) % degree;
    }
  }

  std::span<const model::SampleIndex> samples_of(model::TaskIndex task) const {
    const model::IndexRange range = samples_[task.value];
    return std::span(draft_.samples).subspan(range.begin, range.size());
  }

  /// Empty ones are left out.
  void add_chunks(model::SampleIndex sample, std::uint32_t place, std::uint32_t degree,
                  std::uint32_t first) {
    const std::uint32_t tokens = tokens_[sample.value];
    const std::uint32_t size = tokens / (2 * degree);
    const std::uint32_t left_over = tokens % (2 * degree);
    const LongerChunks longer{degree, first, std::min(left_over, degree),
                              left_over - std::min(left_over, degree)};
    for (const std::uint32_t chunk : {place, 2 * degree - 1 - place}) {
      const std::uint32_t begin = chunk * size + longer.before(chunk);
      const std::uint32_t end = (chunk + 1) * size + longer.before(chunk + 1);
      if (begin == end) continue;
      // The last member's are neighbours, and one piece.
      const bool joins = chunk != place && !plan_.pieces.empty() &&
                         plan_.pieces.back().sample == sample && plan_.pieces.back().hi == begin;
      if (joins) {
        plan_.pieces.back().hi = end;
        continue;
      }
      plan_.pieces.push_back({sample, begin, end});
    }
  }

  StepPlan& plan_;
  const PlanDraft& draft_;
  std::vector<std::uint32_t> tokens_;         // By sample.
  std::vector<model::IndexRange> samples_;    // By task, of draft_.samples.
  std::vector<std::uint32_t> place_in_ring_;  // By micro-batch.
};

}  // namespace

void scale(PlanDraft& draft, std::uint64_t layers) {
  for (TaskDraft& task : draft.tasks) {
    task.start_ns *= layers;
    task.time_ns *= layers;
  }
  draft.lower_bound_ns *= layers;
  draft.makespan_ns *= layers;
}

namespace {

std::uint64_t end_of_tasks(const StepPlan& plan) {
  std::vector<std::uint64_t> free_ns(plan.ranks.size(), 0);
  std::uint64_t last_ns = 0;
  for (const model::Task& task : plan.tasks) {
    std::uint64_t end_ns = 0;
    for (const HdpRank rank : plan.members_of(task)) {
      end_ns = std::max(end_ns, free_ns[rank.value]);
    }
    end_ns += task.cost_ns;
    for (const HdpRank rank : plan.members_of(task)) free_ns[rank.value] = end_ns;
    last_ns = std::max(last_ns, end_ns);
  }
  return last_ns;
}

}  // namespace

StepPlan make_plan(model::Topology topology, std::string strategy,
                   std::vector<model::PlanSample> samples, PlanDraft draft) {
  StepPlan plan;
  plan.topology = std::move(topology);
  plan.strategy = std::move(strategy);
  plan.samples = std::move(samples);
  plan.ranks.resize(plan.topology.hdp_size());
  PlanMaker(plan, draft).make();
  plan.lower_bound_ns = draft.lower_bound_ns;
  plan.bound_term = draft.bound_term;
  const bool staged = plan.topology.extent(model::Axis::kPp) > 1;
  plan.makespan_ns = staged ? draft.makespan_ns : end_of_tasks(plan);
  plan.digest = model::plan_digest(plan);
  return plan;
}

}  // namespace batchloom::planning
