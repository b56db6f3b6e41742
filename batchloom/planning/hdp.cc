// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/hdp_assign.h"
#include "batchloom/planning/hdp_pipeline.h"
#include "batchloom/planning/naive_deal.h"
#include "batchloom/planning/pipeline_bound.h"
#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/small_search.h"

namespace batchloom::planning {
namespace {

/// Share of the lower bound, in 1/1,000, above which naive assignment may turn out to be better.
constexpr std::uint64_t kNaiveAbove = 1018;

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
  std::optional<PlanDraft> better;
  std::uint64_t makespan_ns = assignment.makespan_ns;
  if (problem.longs.size() + problem.shorts.size() < kSmallStepSamples) {
    better = search_small(costs, levels, problem, makespan_ns);
    if (better) makespan_ns = better->makespan_ns;
  }
  if (makespan_ns / kNaiveAbove > problem.lower_bound_ns() / 1000) {
    if (auto naive = deal_naively(costs, levels, problem, makespan_ns)) better = std::move(naive);
  }
  return better ? *std::move(better) : write_draft(costs, problem, assignment);
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
  HdpPlanner planner(std::move(costs), std::move(topology), model.layers);
  const std::uint32_t stages = planner.topology_.extent(model::Axis::kPp);
  if (stages > 1) planner.pipeline_.emplace(model, stages);
  if (shape.offload_any) {
    shape.offload_any = false;
    BL_ASSIGN_OR_RETURN(planner.without_offload_, HdpCosts::create(model, shape));
  }
  return planner;
}

Result<model::StepPlan> HdpPlanner::plan(std::vector<model::PlanSample> samples) const {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  std::vector<std::uint32_t> tokens;
  tokens.reserve(samples.size());
  for (const model::PlanSample& sample : samples) tokens.push_back(sample.tokens);
  const auto name = [&](std::uint32_t row) { return to_string(samples[row].id); };
  BL_ASSIGN_OR_RETURN(const HdpProblem problem, make_problem(costs_, tokens, name));
  if (pipeline_) {
    return make_pipeline_plan(topology_, "hdp", std::move(samples),
                              assign_pipelines(*pipeline_, costs_, problem).draft(), *pipeline_,
                              pipeline_bound(*pipeline_, costs_, problem));
  }
  PlanDraft draft = draft_of(costs_, levels_, problem);
  if (without_offload_) {
    BL_ASSIGN_OR_RETURN(const HdpProblem plain, make_problem(*without_offload_, tokens, name));
    PlanDraft other = draft_of(*without_offload_, levels_, plain);
    if (other.makespan_ns <= draft.makespan_ns) draft = std::move(other);
  }
  draft.lower_bound_ns = problem.lower_bound_ns();
  draft.bound_term = problem.work_bound_ns >= problem.longest_bound_ns ? model::BoundTerm::kWork
                                                                       : model::BoundTerm::kLongest;
  scale(draft, layers_);
  return make_plan(topology_, "hdp", std::move(samples), std::move(draft));
}

}  // namespace batchloom::planning
