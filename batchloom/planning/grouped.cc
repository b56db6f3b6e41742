// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/grouped.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "batchloom/planning/balance.h"
#include "batchloom/planning/hdp_costs.h"
#include "batchloom/planning/pipeline_bound.h"
#include "batchloom/planning/plan_draft.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

/// Samples that run together, by row.
using RowBatch = std::vector<std::uint32_t>;

class GroupedPlan {
 public:
  GroupedPlan(const HdpCosts& costs, const PipelineCosts& pipeline, const model::Topology& topology,
              const GroupedOptions& options, std::span<const model::PlanSample> samples)
      : costs_(costs),
        pipeline_(pipeline),
        topology_(topology),
        options_(options),
        samples_(samples),
        groups_(topology.extent(model::Axis::kDp)),
        degree_(topology.extent(model::Axis::kCp)) {}

  /// Without groups that are given, by the options' balance.
  Result<PlanDraft> make(const Buckets* given) {
    BL_RETURN_IF_ERROR(check_samples());
    const std::vector<RowBatch> members = assign_groups(given != nullptr ? *given : buckets());
    std::uint32_t batches = 0;
    for (const RowBatch& rows : members) batches = std::max(batches, batches_needed(rows));
    for (std::uint32_t group = 0; group < groups_; ++group)
      add_group(group, members[group], batches);
    BL_RETURN_IF_ERROR(bound());
    return std::move(draft_);
  }

  /// Of one layer of a stage. Packs of the cheapest size are the least that tokens cost.
  Result<GroupedWork> work() const {
    BL_RETURN_IF_ERROR(check_samples());
    GroupedWork work;
    std::uint64_t tokens = 0;
    for (const model::PlanSample& sample : samples_) {
      work.by_sample.push_back(cost_of(sample));
      work.least_total_ns += attention_ns(sample);
      tokens += sample.tokens;
      work.least_longest_ns =
          std::max(work.least_longest_ns,
                   attention_ns(sample) + costs_.least_rest_from_ns(share_of(sample)));
    }
    work.least_longest_ns *= pipeline_.stages();
    work.least_total_ns += costs_.least_rest_ns(tokens / degree_) + groups_ * least_bubble_ns();
    return work;
  }

 private:
  Status check_samples() const {
    for (const model::PlanSample& sample : samples_) {
      if (share_of(sample) <= options_.capacity_tokens) continue;
      return Status::does_not_fit(fmt::format(
          "sample {} of {} tokens does not fit: a group of {} ranks holds {} tokens each; raise "
          "the capacity or the extent of cp, or cut samples at fewer tokens (max_sample_tokens)",
          to_string(sample.id), sample.tokens, degree_, options_.capacity_tokens));
    }
    return Status::ok();
  }

  /// Of the member that holds most of the sample.
  std::uint32_t share_of(const model::PlanSample& sample) const {
    return (sample.tokens + degree_ - 1) / degree_;
  }
  std::uint64_t attention_ns(const model::PlanSample& sample) const {
    return (costs_.attention_ns(sample.tokens) + degree_ - 1) / degree_;
  }
  /// For ranking: what the sample adds to a member's work.
  std::uint64_t cost_of(const model::PlanSample& sample) const {
    return attention_ns(sample) + share_of(sample) * costs_.least_rest_per_token() / 1024;
  }

  Buckets buckets() const {
    std::vector<std::uint64_t> costs(samples_.size());
    for (std::uint32_t row = 0; row < costs.size(); ++row) costs[row] = cost_of(samples_[row]);
    if (options_.balance == GroupedBalance::kKarmarkarKarp) {
      return balance_karmarkar_karp(costs, groups_);
    }
    if (options_.balance != GroupedBalance::kNone) return balance_lpt(costs, groups_);
    Buckets dealt(samples_.size());
    for (std::uint32_t row = 0; row < dealt.size(); ++row) dealt[row] = row % groups_;
    return dealt;
  }

  std::vector<RowBatch> assign_groups(const Buckets& of) const {
    std::vector<RowBatch> members(groups_);
    for (std::uint32_t row = 0; row < of.size(); ++row) members[of[row]].push_back(row);
    return members;
  }

  std::vector<SizedItem> items_of(const RowBatch& rows) const {
    std::vector<SizedItem> items;
    for (const std::uint32_t row : rows)
      items.push_back({cost_of(samples_[row]), share_of(samples_[row])});
    return items;
  }
  std::uint32_t batches_needed(const RowBatch& rows) const {
    return *count_bins(items_of(rows), options_.capacity_tokens);
  }

  std::uint64_t time_ns(const RowBatch& rows) const {
    std::uint64_t time = 0;
    std::uint32_t tokens = 0;
    for (const std::uint32_t row : rows) {
      time += attention_ns(samples_[row]);
      tokens += samples_[row].tokens;
    }
    const std::uint32_t share = (tokens + degree_ - 1) / degree_;
    return time + costs_.rest_ns(std::max(share, 1U));  // A filler runs one token.
  }

  /// By descending time; the last ones may be fillers.
  std::vector<RowBatch> micro_batches(const RowBatch& rows, std::uint32_t batches) const {
    const std::vector<SizedItem> items = items_of(rows);
    const std::uint32_t capacity = options_.capacity_tokens;
    const std::uint32_t used =
        options_.balance == GroupedBalance::kTwoLevel ? batches : *count_bins(items, capacity);
    const Buckets of = options_.balance == GroupedBalance::kTwoLevel
                           ? *balance_within(items, used, capacity)
                           : *fit_within(items, used, capacity);
    std::vector<RowBatch> result(batches);
    for (std::size_t i = 0; i < rows.size(); ++i) result[of[i]].push_back(rows[i]);
    std::ranges::stable_sort(result, std::greater<>(),
                             [this](const RowBatch& batch) { return time_ns(batch); });
    return result;
  }

  void add_group(std::uint32_t group, const RowBatch& rows, std::uint32_t batches) {
    std::uint64_t start_ns = 0;
    for (const RowBatch& batch : micro_batches(rows, batches)) {
      TaskDraft task;
      task.start_ns = start_ns;
      task.time_ns = time_ns(batch);
      task.members.begin = static_cast<std::uint32_t>(draft_.members.size());
      for (std::uint32_t place = 0; place < degree_; ++place) {
        draft_.members.push_back(rank_at(group, place));
      }
      task.members.end = static_cast<std::uint32_t>(draft_.members.size());
      task.samples.begin = static_cast<std::uint32_t>(draft_.samples.size());
      for (const std::uint32_t row : batch) draft_.samples.emplace_back(row);
      task.samples.end = static_cast<std::uint32_t>(draft_.samples.size());
      draft_.tasks.push_back(task);
      start_ns += task.time_ns;
    }
  }

  Status bound() {
    BL_ASSIGN_OR_RETURN(const GroupedWork least, work());
    const std::uint64_t mean = (least.least_total_ns + groups_ - 1) / groups_;
    const bool is_work = mean >= least.least_longest_ns;
    draft_.lower_bound_ns = is_work ? mean : least.least_longest_ns;
    draft_.bound_term = is_work ? model::BoundTerm::kWork : model::BoundTerm::kLongest;
    return Status::ok();
  }

  /// What a group's last stage waits for its first micro-batch, and all others after it for the
  /// last one. None where there are no samples: then no group runs anything.
  std::uint64_t least_bubble_ns() const {
    if (pipeline_.stages() == 1 || samples_.empty()) return 0;
    return (pipeline_.stages() - 1) * least_phases_from(pipeline_, costs_)[1].total_ns();
  }

  model::HdpRank rank_at(std::uint32_t group, std::uint32_t place) const {
    model::Coordinates at;
    at[model::Axis::kDp] = group;
    at[model::Axis::kCp] = place;
    return topology_.hdp_rank(topology_.rank(at));
  }

  const HdpCosts& costs_;
  const PipelineCosts& pipeline_;
  const model::Topology& topology_;
  const GroupedOptions& options_;
  const std::span<const model::PlanSample> samples_;
  const std::uint32_t groups_;
  const std::uint32_t degree_;
  PlanDraft draft_;
};

}  // namespace

std::string_view to_string(GroupedBalance balance) {
  switch (balance) {
    case GroupedBalance::kNone: return "none";
    case GroupedBalance::kLpt: return "lpt";
    case GroupedBalance::kKarmarkarKarp: return "kk";
    case GroupedBalance::kTwoLevel: return "two_level";
  }
  return "unknown";
}

namespace {

Result<HdpCosts> costs_for(const CostModel& model, const model::Topology& topology,
                           const GroupedOptions& options) {
  return HdpCosts::create(
      model, {.ranks = topology.hdp_size(), .capacity_tokens = options.capacity_tokens});
}

Result<model::StepPlan> plan_with_groups(const CostModel& model, const model::Topology& topology,
                                         const GroupedOptions& options,
                                         std::vector<model::PlanSample> samples,
                                         const Buckets* given) {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  BL_ASSIGN_OR_RETURN(const HdpCosts costs, costs_for(model, topology, options));
  const PipelineCosts pipeline(model, topology.extent(model::Axis::kPp));
  BL_ASSIGN_OR_RETURN(PlanDraft draft,
                      GroupedPlan(costs, pipeline, topology, options, samples).make(given));
  return make_timed_plan(topology, to_string(options.balance), std::move(samples), std::move(draft),
                         model);
}

}  // namespace

Result<model::StepPlan> plan_grouped(const CostModel& model, const model::Topology& topology,
                                     const GroupedOptions& options,
                                     std::vector<model::PlanSample> samples) {
  return plan_with_groups(model, topology, options, std::move(samples), nullptr);
}

Result<model::StepPlan> plan_in_groups(const CostModel& model, const model::Topology& topology,
                                       const GroupedOptions& options,
                                       std::vector<model::PlanSample> samples,
                                       const Buckets& group_of) {
  return plan_with_groups(model, topology, options, std::move(samples), &group_of);
}

Result<GroupedWork> grouped_work(const CostModel& model, const model::Topology& topology,
                                 const GroupedOptions& options,
                                 std::span<const model::PlanSample> samples) {
  BL_ASSIGN_OR_RETURN(const HdpCosts costs, costs_for(model, topology, options));
  const PipelineCosts pipeline(model, topology.extent(model::Axis::kPp));
  BL_ASSIGN_OR_RETURN(GroupedWork work,
                      GroupedPlan(costs, pipeline, topology, options, samples).work());
  for (std::uint64_t& cost : work.by_sample) cost *= pipeline.stage_layers();
  work.least_total_ns *= pipeline.stage_layers();
  work.least_longest_ns *= pipeline.stage_layers();
  return work;
}

}  // namespace batchloom::planning
