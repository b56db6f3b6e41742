// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/hdp_assign.h"
#include "batchloom/planning/plan_draft.h"

namespace batchloom::planning {
namespace {

Status sort_by_id(std::vector<model::PlanSample>& samples) {
  if (!std::ranges::is_sorted(samples, {}, &model::PlanSample::id)) {
    std::ranges::sort(samples, {}, &model::PlanSample::id);
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].tokens == 0) {
      return Status::invalid(fmt::format("sample {} has no tokens", to_string(samples[i].id)));
    }
    if (i > 0 && samples[i - 1].id == samples[i].id) {
      return Status::invalid(fmt::format("sample {} is given twice", to_string(samples[i].id)));
    }
  }
  return Status::ok();
}

PlanDraft draft_of(const HdpProblem& problem, const HdpAssignment& assignment,
                   const HdpCosts& costs, std::uint32_t layers) {
  PlanDraft draft;
  draft.samples.reserve(problem.longs.size() + problem.shorts.size());
  const auto add = [&](std::uint64_t start, std::uint64_t time, std::uint32_t first_rank,
                       std::uint32_t degree, std::size_t first_sample) {
    const auto begin = static_cast<std::uint32_t>(draft.members.size());
    for (std::uint32_t i = 0; i < degree; ++i) draft.members.emplace_back(first_rank + i);
    draft.tasks.push_back({.start_ns = start * layers,
                           .time_ns = time * layers,
                           .members = {begin, begin + degree},
                           .samples = {static_cast<std::uint32_t>(first_sample),
                                       static_cast<std::uint32_t>(draft.samples.size())},
                           .offload = {}});
  };
  for (const PlacedGang& gang : assignment.gangs.gangs) {
    const std::size_t first = draft.samples.size();
    draft.samples.emplace_back(gang.row);
    add(gang.start_ns, gang.time_ns, gang.first_rank, gang.degree, first);
  }
  const RankLoads& loads = assignment.loads;
  for (std::uint32_t rank = 0; rank < loads.ranks(); ++rank) {
    std::uint64_t start = loads.begin_ns(rank);
    loads.for_each_pack(rank, [&](const std::vector<std::uint32_t>& items, std::uint32_t tokens) {
      const std::size_t first = draft.samples.size();
      std::uint64_t time = costs.rest_ns(tokens);
      for (const std::uint32_t item : items) {
        time += problem.shorts[item].attention_ns;
        draft.samples.emplace_back(problem.shorts[item].row);
      }
      add(start, time, rank, 1, first);
      start += time;
    });
  }
  draft.lower_bound_ns = problem.lower_bound_ns() * layers;
  draft.bound_term = problem.work_bound_ns >= problem.longest_bound_ns
                         ? model::BoundTerm::kWork
                         : model::BoundTerm::kLongest;
  draft.makespan_ns = assignment.makespan_ns * layers;
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
  BL_ASSIGN_OR_RETURN(const HdpProblem problem,
                      make_problem(costs_, tokens, [&](std::uint32_t row) {
                        return to_string(samples[row].id);
                      }));
  const HdpAssignment assignment = assign_hdp(costs_, problem);
  return make_plan(topology_, "hdp", std::move(samples),
                   draft_of(problem, assignment, costs_, layers_));
}

}  // namespace batchloom::planning
