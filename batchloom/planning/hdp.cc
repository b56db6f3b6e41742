// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/hdp_assign.h"
#include "batchloom/planning/hdp_pipeline.h"
#include "batchloom/planning/naive_hdp.h"
#include "batchloom/planning/pipeline_bound.h"
#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/small_search.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

/// Collects tasks.
class DraftWriter {
 public:
  explicit DraftWriter(const HdpCosts& costs) : costs_(costs) {}

  void add_gang(const PlacedGang& gang, std::span<const model::HdpRank> members) {
    samples_.emplace_back(gang.row);
    const std::uint32_t share = (gang.tokens + gang.degree() - 1) / gang.degree();
    add({.start_ns = gang.start_ns, .time_ns = gang.time_ns, .offload = costs_.offload(share)},
        members, 1);
  }

  void add_packs(std::uint32_t rank, const HdpProblem& problem, const RankLoads& loads) {
    std::uint64_t start_ns = loads.begin_ns(rank);
    loads.for_each_pack(rank, [&](std::span<const std::uint32_t> items, std::uint32_t tokens) {
      std::uint64_t time_ns = costs_.rest_ns(tokens);
      for (const std::uint32_t item : items) {
        time_ns += problem.shorts[item].attention_ns;
        samples_.emplace_back(problem.shorts[item].row);
      }
      const model::HdpRank member(rank);
      add({.start_ns = start_ns, .time_ns = time_ns}, std::span(&member, 1), items.size());
      start_ns += time_ns;
    });
  }

  PlanDraft take() && {
    draft_.samples = std::move(samples_);
    return std::move(draft_);
  }

 private:
  void add(TaskDraft task, std::span<const model::HdpRank> members, std::size_t samples) {
    const auto end = static_cast<std::uint32_t>(samples_.size());
    task.samples = {end - static_cast<std::uint32_t>(samples), end};
    task.members.begin = static_cast<std::uint32_t>(draft_.members.size());
    draft_.members.insert(draft_.members.end(), members.begin(), members.end());
    task.members.end = static_cast<std::uint32_t>(draft_.members.size());
    draft_.tasks.push_back(task);
  }

  const HdpCosts& costs_;
  PlanDraft draft_;
  std::vector<model::SampleIndex> samples_;
};

PlanDraft write_draft(const HdpCosts& costs, const HdpProblem& problem,
                      const HdpAssignment& assignment) {
  DraftWriter writer(costs);
  const GangPlacement& placed = assignment.gangs;
  for (const PlacedGang& gang : placed.gangs) {
    writer.add_gang(gang, std::span(placed.members).subspan(gang.members.begin, gang.degree()));
  }
  for (std::uint32_t rank = 0; rank < assignment.loads.ranks(); ++rank) {
    writer.add_packs(rank, problem, assignment.loads);
  }
  PlanDraft draft = std::move(writer).take();
  draft.makespan_ns = assignment.makespan_ns;
  return draft;
}

/// Times are of one layer.
PlanDraft draft_of(const HdpCosts& costs, const RankLevels& levels, const HdpProblem& problem) {
  const HdpAssignment assignment = assign_hdp(costs, levels, problem);
  if (problem.longs.size() + problem.shorts.size() < kSmallStepSamples) {
    if (auto better = search_small(costs, levels, problem, assignment.makespan_ns)) return *better;
  }
  return write_draft(costs, problem, assignment);
}

std::vector<RingLink> links_of(const RankLevels& levels) {
  std::vector<RingLink> links;
  for (std::size_t level = 0; level < levels.count(); ++level) {
    links.push_back(
        {levels.widest(level), levels.bandwidth_bytes_per_s(level), levels.latency_ns(level)});
  }
  return links;
}

}  // namespace

Result<HdpPlanner> HdpPlanner::create(const CostModel& model, model::Topology topology,
                                      const HdpOptions& options) {
  HdpShape shape{.ranks = topology.hdp_size(),
                 .capacity_tokens = options.capacity_tokens,
                 .min_share_tokens = options.min_share_tokens,
                 .offload = options.offload || options.offload_where_earlier,
                 .offload_any = options.offload_where_earlier};
  if (options.ring) {
    if (topology.levels().empty()) {
      return Status::invalid(
          "the exchange of rings counts, but the topology has no levels to say how fast it is; add "
          "at least one, or leave it out (ring)");
    }
    shape.links = links_of(RankLevels(topology));
  }
  BL_ASSIGN_OR_RETURN(HdpCosts costs, HdpCosts::create(model, shape));
  HdpPlanner planner(model, std::move(costs), std::move(topology));
  if (shape.offload_any) {
    shape.offload_any = false;
    BL_ASSIGN_OR_RETURN(planner.without_offload_, HdpCosts::create(model, shape));
  }
  return planner;
}

Result<HdpProblem> HdpPlanner::problem_of(const HdpCosts& costs,
                                          const std::vector<model::PlanSample>& samples) const {
  std::vector<std::uint32_t> tokens;
  tokens.reserve(samples.size());
  for (const model::PlanSample& sample : samples) tokens.push_back(sample.tokens);
  return make_problem(costs, tokens, [&](std::uint32_t row) { return to_string(samples[row].id); });
}

Result<model::StepPlan> HdpPlanner::plan(std::vector<model::PlanSample> samples) const {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  BL_ASSIGN_OR_RETURN(const HdpProblem problem, problem_of(costs_, samples));
  BL_ASSIGN_OR_RETURN(model::StepPlan plan, pipeline_.stages() > 1
                                                ? plan_stages(problem, std::move(samples))
                                                : plan_flat(problem, std::move(samples)));
  BL_RETURN_IF_ERROR(outdo_naive(problem, plan));
  return plan;
}

Result<model::StepPlan> HdpPlanner::plan_flat(const HdpProblem& problem,
                                              std::vector<model::PlanSample> samples) const {
  PlanDraft draft = draft_of(costs_, levels_, problem);
  if (without_offload_) {
    BL_ASSIGN_OR_RETURN(const HdpProblem plain, problem_of(*without_offload_, samples));
    PlanDraft other = draft_of(*without_offload_, levels_, plain);
    if (other.makespan_ns <= draft.makespan_ns) draft = std::move(other);
  }
  state_bound(pipeline_bound(pipeline_, costs_, problem), draft);
  if (!costs_.shape().links.empty()) {
    // Gangs were charged for the slowest links that their ranks could use.
    return make_timed_plan(topology_, "hdp", std::move(samples), std::move(draft), model_, true);
  }
  scale(draft, model_.layers);
  return make_plan(topology_, "hdp", std::move(samples), std::move(draft));
}

Result<model::StepPlan> HdpPlanner::plan_stages(const HdpProblem& problem,
                                                std::vector<model::PlanSample> samples) const {
  PlanDraft draft = assign_pipelines(pipeline_, costs_, problem).tasks.draft();
  state_bound(pipeline_bound(pipeline_, costs_, problem), draft);
  return make_timed_plan(topology_, "hdp", std::move(samples), std::move(draft), model_,
                         !costs_.shape().links.empty());
}

Status HdpPlanner::outdo_naive(const HdpProblem& problem, model::StepPlan& plan) const {
  NaiveItems items = naive_items(costs_, plan.samples);
  for (const bool offload : {false, true}) {
    if (offload && (!costs_.shape().offload || problem.longs.empty())) break;
    const Status fits = choose_degrees(costs_, model_, offload, plan.samples, items);
    if (!fits.is_ok()) continue;  // By their rule a sample fits nowhere.
    if (pipeline_.stages() == 1 &&
        naive_floor_ns(costs_, items) * model_.layers >= plan.makespan_ns) {
      continue;
    }
    BL_ASSIGN_OR_RETURN(model::StepPlan naive,
                        deal_naively(costs_, model_, topology_, "hdp", plan.samples, items,
                                     !costs_.shape().links.empty()));
    if (naive.makespan_ns >= plan.makespan_ns) continue;
    naive.lower_bound_ns = plan.lower_bound_ns;
    naive.bound_term = plan.bound_term;
    if (offload) BL_RETURN_IF_ERROR(bound_with_offload(naive));
    naive.digest = model::plan_digest(naive);
    plan = std::move(naive);
  }
  return Status::ok();
}

Status HdpPlanner::bound_with_offload(model::StepPlan& plan) const {
  HdpShape shape = costs_.shape();
  shape.offload_any = true;
  BL_ASSIGN_OR_RETURN(const HdpCosts costs, HdpCosts::create(model_, shape));
  BL_ASSIGN_OR_RETURN(const HdpProblem problem, problem_of(costs, plan.samples));
  PlanDraft draft;
  state_bound(pipeline_bound(pipeline_, costs, problem), draft);
  plan.lower_bound_ns = draft.lower_bound_ns * pipeline_.stage_layers();
  plan.bound_term = draft.bound_term;
  return Status::ok();
}

}  // namespace batchloom::planning
