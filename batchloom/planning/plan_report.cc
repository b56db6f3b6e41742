// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/plan_report.h"

#include <algorithm>
#include <span>

namespace batchloom::planning {
namespace {

LoadSpread spread_of(std::span<const std::uint64_t> loads_ns) {
  LoadSpread spread;
  if (loads_ns.empty()) return spread;
  for (const std::uint64_t load : loads_ns) {
    spread.largest_ns = std::max(spread.largest_ns, load);
    spread.mean_ns += load;
  }
  spread.mean_ns /= loads_ns.size();
  return spread;
}

/// Of samples dealt in turn, of one stage of `stages`.
LoadSpread dealt_in_turn(const model::StepPlan& plan, const CostModel& costs) {
  const std::uint32_t stages = plan.topology.extent(model::Axis::kPp);
  const std::uint64_t layers = (costs.layers + stages - 1) / stages;
  std::vector<std::uint64_t> loads_ns(plan.ranks.size());
  for (std::size_t i = 0; i < plan.samples.size(); ++i) {
    const std::uint32_t tokens = plan.samples[i].tokens;
    loads_ns[i % loads_ns.size()] +=
        layers * (costs.attention.time_ns(tokens) + costs.linear.time_ns(tokens));
  }
  return spread_of(loads_ns);
}

std::uint32_t tokens_of(const model::StepPlan& plan, const model::MicroBatch& micro_batch) {
  std::uint32_t tokens = 0;
  for (const model::Piece& piece : plan.pieces_of(micro_batch)) tokens += piece.tokens();
  return tokens;
}

/// Each member computes as many tokens as the one that holds most; a filler one.
std::uint64_t padding_of(const model::StepPlan& plan, std::uint64_t sample_tokens) {
  std::vector<std::uint32_t> largest(plan.tasks.size(), 1);
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    std::uint32_t& most = largest[micro_batch.task.value];
    most = std::max(most, tokens_of(plan, micro_batch));
  }
  std::uint64_t computed = 0;
  for (const model::MicroBatch& micro_batch : plan.micro_batches) {
    computed += largest[micro_batch.task.value];
  }
  return computed - sample_tokens;
}

void count_shape(const model::StepPlan& plan, PlanReport& report) {
  for (const model::PlanSample& sample : plan.samples) {
    report.sample_tokens += sample.tokens;
    report.longest_sample_tokens = std::max(report.longest_sample_tokens, sample.tokens);
  }
  for (const model::Task& task : plan.tasks) {
    report.largest_ring = std::max(report.largest_ring, task.members.size());
    if (task.offload.value > 0) ++report.offloading_tasks;
  }
  for (const model::IndexRange rank : plan.ranks) {
    report.micro_batches_most = std::max(report.micro_batches_most, rank.size());
  }
  report.padding_tokens = padding_of(plan, report.sample_tokens);
}

}  // namespace

double LoadSpread::imbalance() const {
  if (mean_ns == 0) return 1;
  return static_cast<double>(largest_ns) / static_cast<double>(mean_ns);
}

PlanReport report_of(const model::StepPlan& plan, const CostModel& costs, const StepTime& time) {
  PlanReport report;
  report.lower_bound_ns = plan.lower_bound_ns;
  report.bound_term = plan.bound_term;
  report.makespan_ns = plan.makespan_ns;
  report.step_ns = time.step_ns;
  report.bytes_by_level = time.bytes_by_level;
  count_shape(plan, report);
  report.before = dealt_in_turn(plan, costs);
  std::vector<std::uint64_t> loads_ns;
  for (const RankTime& rank : time.ranks) {
    loads_ns.push_back(rank.busy.total_ns());
    report.busy.compute_ns += rank.busy.compute_ns;
    report.busy.ring_ns += rank.busy.ring_ns;
    report.busy.copy_ns += rank.busy.copy_ns;
    report.idle_ns += rank.idle_ns;
    report.idle_most_ns = std::max(report.idle_most_ns, rank.idle_ns);
  }
  report.after = spread_of(loads_ns);
  return report;
}

Result<PlanReport> report_of(const model::StepPlan& plan, const CostModel& costs,
                             const StepTimeOptions& options) {
  BL_ASSIGN_OR_RETURN(const StepTime time, step_time(plan, costs, options));
  return report_of(plan, costs, time);
}

std::string_view to_string(model::BoundTerm term) {
  switch (term) {
    case model::BoundTerm::kNone: return "none";
    case model::BoundTerm::kWork: return "work";
    case model::BoundTerm::kLongest: return "longest";
  }
  return "unknown";
}

}  // namespace batchloom::planning
