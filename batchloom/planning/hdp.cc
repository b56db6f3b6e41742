// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/hdp_assign.h"
#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/small_search.h"

namespace batchloom::planning {
namespace {

/// Collects tasks.
class DraftWriter {
 public:
  explicit DraftWriter(const HdpCosts& costs) : costs_(costs) {}

  void add_gang(const PlacedGang& gang) {
    samples_.emplace_back(gang.row);
    const std::uint32_t share = (gang.tokens + gang.degree - 1) / gang.degree;
    add({.start_ns = gang.start_ns, .time_ns = gang.time_ns, .offload = costs_.offload(share)},
        gang.first_rank, gang.degree, 1);
  }

  void add_packs(std::uint32_t rank, const HdpProblem& problem, const RankLoads& loads) {
    std::uint64_t start_ns = loads.begin_ns(rank);
    loads.for_each_pack(rank, [&](std::span<const std::uint32_t> items, std::uint32_t tokens) {
      std::uint64_t time_ns = costs_.rest_ns(tokens);
      for (const std::uint32_t item : items) {
        time_ns += problem.shorts[item].attention_ns;
        samples_.emplace_back(problem.shorts[item].row);
      }
      add({.start_ns = start_ns, .time_ns = time_ns}, rank, 1, items.size());
      start_ns += time_ns;
    });
  }

  PlanDraft take() && {
    draft_.samples = std::move(samples_);
    return std::move(draft_);
  }

 private:
  void add(TaskDraft task, std::uint32_t first_rank, std::uint32_t degree, std::size_t samples) {
    const auto end = static_cast<std::uint32_t>(samples_.size());
    const auto begin = static_cast<std::uint32_t>(draft_.members.size());
    for (std::uint32_t i = 0; i < degree; ++i) draft_.members.emplace_back(first_rank + i);
    task.members = {begin, begin + degree};
    task.samples = {end - static_cast<std::uint32_t>(samples), end};
    draft_.tasks.push_back(task);
  }

  const HdpCosts& costs_;
  PlanDraft draft_;
  std::vector<model::SampleIndex> samples_;
};

/// Times are of one layer.
PlanDraft draft_of(const HdpCosts& costs, const HdpProblem& problem) {
  const HdpAssignment assignment = assign_hdp(costs, problem);
  if (problem.longs.size() + problem.shorts.size() < kSmallStepSamples) {
    if (auto better = search_small(costs, problem, assignment.makespan_ns)) return *better;
  }
  DraftWriter writer(costs);
  for (const PlacedGang& gang : assignment.gangs.gangs) writer.add_gang(gang);
  for (std::uint32_t rank = 0; rank < assignment.loads.ranks(); ++rank) {
    writer.add_packs(rank, problem, assignment.loads);
  }
  PlanDraft draft = std::move(writer).take();
  draft.makespan_ns = assignment.makespan_ns;
  return draft;
}

}  // namespace

Result<HdpPlanner> HdpPlanner::create(const CostModel& model, model::Topology topology,
                                      const HdpOptions& options) {
  BL_ASSIGN_OR_RETURN(HdpCosts costs,
                      HdpCosts::create(model, {.ranks = topology.hdp_size(),
                                               .capacity_tokens = options.capacity_tokens,
                                               .min_share_tokens = options.min_share_tokens,
                                               .offload = options.offload}));
  return HdpPlanner(std::move(costs), std::move(topology), model.layers);
}

Result<model::StepPlan> HdpPlanner::plan(std::vector<model::PlanSample> samples) const {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  std::vector<std::uint32_t> tokens;
  tokens.reserve(samples.size());
  for (const model::PlanSample& sample : samples) tokens.push_back(sample.tokens);
  BL_ASSIGN_OR_RETURN(
      const HdpProblem problem,
      make_problem(costs_, tokens, [&](std::uint32_t row) { return to_string(samples[row].id); }));
  PlanDraft draft = draft_of(costs_, problem);
  draft.lower_bound_ns = problem.lower_bound_ns();
  draft.bound_term = problem.work_bound_ns >= problem.longest_bound_ns ? model::BoundTerm::kWork
                                                                       : model::BoundTerm::kLongest;
  scale(draft, layers_);
  return make_plan(topology_, "hdp", std::move(samples), std::move(draft));
}

}  // namespace batchloom::planning
