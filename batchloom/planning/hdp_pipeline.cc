// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/hdp_pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/planning/load_repair.h"
#include "batchloom/planning/pipeline_bound.h"
#include "batchloom/planning/pipeline_gangs.h"
#include "batchloom/planning/pipeline_search.h"
#include "batchloom/planning/rank_loads.h"
#include "batchloom/planning/rank_sequence.h"

namespace batchloom::planning {
namespace {

class PipelineAssigner {
 public:
  PipelineAssigner(const PipelineCosts& pipeline, const HdpCosts& costs, const HdpProblem& problem,
                   const HdpPipelineEffort& effort)
      : pipeline_(pipeline),
        costs_(costs),
        problem_(problem),
        effort_(effort),
        ranks_(costs.shape().ranks),
        bound_ns_(pipeline_bound(pipeline, costs, problem).lower_bound_ns()),
        sequencer_(pipeline, costs, problem) {}

  HdpPipelinePlan run() {
    std::uint64_t mill = 1000;
    for (int tries = 0; tries < effort_.targets;) {
      const std::uint64_t target_ns = bound_ns_ / 1000 * mill + bound_ns_ % 1000 * mill / 1000;
      if (best_ && target_ns >= best_->makespan_ns) break;
      mill += mill / 50;
      auto gangs = place_pipeline_gangs(problem_, ranks_, pipeline_.stages(), target_ns);
      if (!gangs) continue;
      ++tries;
      const std::uint64_t before_ns = best_ ? best_->makespan_ns : UINT64_MAX;
      if (best_ && *gangs == gangs_) continue;  // Nothing new.
      use(*std::move(gangs));
      improve(effort_.rounds, {.more_packs = 2, .grow = 1, .shrink = 3, .before = 2});
      if (best_->makespan_ns < before_ns) best_gangs_ = gangs_;
    }
    use(best_gangs_);
    improve(effort_.final_rounds, {.more_packs = 4, .grow = 3, .shrink = 4, .before = 3});
    return *std::move(best_);
  }

 private:
  void use(std::vector<PipelineGang> gangs) {
    gangs_ = std::move(gangs);
    phases_.clear();
    gangs_of_.assign(ranks_, {});
    for (const PipelineGang& gang : gangs_) {
      const LongSample& sample = problem_.longs[gang.sample];
      phases_.push_back(costs_.gang_phases(sample.attention_ns, sample.tokens, gang.degree));
      for (std::uint32_t i = 0; i < gang.degree; ++i) {
        gangs_of_[gang.first_rank + i].push_back(phases_.back());
      }
    }
    begin_ns_.assign(ranks_, 0);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      std::uint64_t longest_ns = 0;
      for (const PhaseTimes& phases : gangs_of_[rank]) {
        begin_ns_[rank] += phases.total_ns();
        longest_ns = std::max(longest_ns, phases.total_ns());
      }
      begin_ns_[rank] += (pipeline_.stages() - 1) * longest_ns;
    }
  }

  void improve(int rounds, const SequenceEffort& effort) {
    for (int round = 0; round < rounds; ++round) {
      RankLoads loads(costs_, problem_.shorts, begin_ns_);
      loads.spread();
      repair_loads(loads, bound_ns_,
                   {.enough_ns = bound_ns_, .rounds = 5, .steps = 1500 + ranks_ / 6});
      PipelineTasks tasks = sequenced(loads, effort);
      const PipelineEnds ends = tasks.ends(pipeline_.stages());
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        const std::uint64_t work_ns = loads.end_ns(rank) - loads.begin_ns(rank);
        begin_ns_[rank] = ends.end_ns[rank] - std::min(work_ns, ends.end_ns[rank]);
      }
      if (!best_ || ends.makespan_ns < best_->makespan_ns) {
        best_.emplace(HdpPipelinePlan{std::move(tasks), ends.makespan_ns});
      }
    }
  }

  PipelineTasks sequenced(const RankLoads& loads, const SequenceEffort& effort) {
    std::vector<RankSequence> sequences;
    sequences.reserve(ranks_);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      sequences.push_back(sequencer_.best(loads.items_of(rank), gangs_of_[rank], effort));
    }
    PipelineTasks tasks(ranks_);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      add_packs(tasks, rank, sequences[rank].before);
    }
    std::vector<model::HdpRank> members;
    for (std::size_t i = 0; i < gangs_.size(); ++i) {
      members.clear();
      for (std::uint32_t place = 0; place < gangs_[i].degree; ++place) {
        members.emplace_back(gangs_[i].first_rank + place);
      }
      const LongSample& sample = problem_.longs[gangs_[i].sample];
      const model::SampleIndex row(sample.row);
      tasks.add(members, std::span(&row, 1), phases_[i],
                costs_.offload((sample.tokens - 1) / gangs_[i].degree + 1));
    }
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      add_packs(tasks, rank, sequences[rank].after);
    }
    return tasks;
  }

  void add_packs(PipelineTasks& tasks, std::uint32_t rank, std::span<const RankPack> packs) {
    const model::HdpRank member(rank);
    for (const RankPack& pack : packs) {
      rows_.clear();
      for (const std::uint32_t item : pack.items) rows_.emplace_back(problem_.shorts[item].row);
      tasks.add(std::span(&member, 1), rows_, pack.phases);
    }
  }

  const PipelineCosts& pipeline_;
  const HdpCosts& costs_;
  const HdpProblem& problem_;
  const HdpPipelineEffort effort_;
  const std::uint32_t ranks_;
  const std::uint64_t bound_ns_;
  RankSequencer sequencer_;
  std::vector<PipelineGang> gangs_;
  std::vector<PhaseTimes> phases_;                 // By gang.
  std::vector<std::vector<PhaseTimes>> gangs_of_;  // By rank.
  std::vector<std::uint64_t> begin_ns_;            // By rank: gangs and bubble.
  std::vector<PipelineGang> best_gangs_;
  std::vector<model::SampleIndex> rows_;
  std::optional<HdpPipelinePlan> best_;
};

}  // namespace

HdpPipelinePlan assign_pipelines(const PipelineCosts& pipeline, const HdpCosts& costs,
                                 const HdpProblem& problem, const HdpPipelineEffort& effort) {
  HdpPipelinePlan plan = PipelineAssigner(pipeline, costs, problem, effort).run();
  const std::size_t samples = problem.longs.size() + problem.shorts.size();
  if (samples * costs.shape().ranks < kPipelineSearchSize) {
    if (auto better = search_pipelines(pipeline, costs, problem, plan.makespan_ns)) return *better;
  }
  return plan;
}

}  // namespace batchloom::planning
