// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/two_module.h"

#include <algorithm>
#include <utility>

#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/bucket_swaps.h"
#include "batchloom/planning/grouped.h"
#include "batchloom/planning/plan_samples.h"

namespace batchloom::planning {
namespace {

constexpr std::uint32_t kExchangesPerGroup = 16;

class TwoModules {
 public:
  TwoModules(const CostModel& encoder, const CostModel& backbone, const model::Topology& topology,
             const TwoModuleOptions& options, const std::vector<model::SampleMeta>& samples)
      : encoder_(encoder),
        backbone_(backbone),
        topology_(topology),
        samples_(samples),
        tokens_(plan_samples_of(samples)),
        groups_(topology.extent(model::Axis::kDp)),
        grouped_{.balance = GroupedBalance::kTwoLevel, .capacity_tokens = options.capacity_tokens} {
  }

  Result<TwoModulePlan> apart() const {
    BL_ASSIGN_OR_RETURN(
        PictureAssignment pictures,
        assign_pictures(encoder_, topology_, Spread::kWorld, Balance::kTwoModule, samples_));
    BL_ASSIGN_OR_RETURN(const GroupedWork work,
                        grouped_work(backbone_, topology_, grouped_, tokens_));
    BL_ASSIGN_OR_RETURN(model::StepPlan plan, plan_in(balanced(work.by_sample)));
    TwoModulePlan result{.plan = std::move(plan), .pictures = std::move(pictures)};
    result.makespan_ns = result.pictures.makespan_ns + result.plan.makespan_ns;
    result.lower_bound_ns = result.pictures.lower_bound_ns + result.plan.lower_bound_ns;
    return result;
  }

  Result<TwoModulePlan> together() const {
    BL_ASSIGN_OR_RETURN(std::vector<PlacedPicture> pictures, pictures_of(encoder_, samples_));
    BL_ASSIGN_OR_RETURN(const GroupedWork work,
                        grouped_work(backbone_, topology_, grouped_, tokens_));
    std::vector<std::uint64_t> costs = work.by_sample;
    for (const PlacedPicture& picture : pictures) costs[picture.sample.value] += picture.cost_ns;
    const Buckets groups = balanced(costs);
    BL_ASSIGN_OR_RETURN(model::StepPlan plan, plan_in(groups));
    Buckets of;
    Buckets dealt;  // Sample by sample, as none does.
    for (const PlacedPicture& picture : pictures) {
      of.push_back(groups[picture.sample.value]);
      dealt.push_back(picture.sample.value % groups_);
    }
    TwoModulePlan result{
        .plan = std::move(plan),
        .pictures = make_assignment(Spread::kDp, groups_, std::move(pictures), of, dealt)};
    result.makespan_ns = slowest_group_ns(result);
    const std::uint64_t all = result.pictures.total_ns + work.least_total_ns;
    result.lower_bound_ns = std::max(
        {(all + groups_ - 1) / groups_, work.least_longest_ns, result.pictures.lower_bound_ns});
    return result;
  }

 private:
  Buckets balanced(const std::vector<std::uint64_t>& costs) const {
    Buckets of = balance_lpt(costs, groups_);
    even_out(costs, groups_, kExchangesPerGroup * groups_, of);
    return of;
  }

  Result<model::StepPlan> plan_in(const Buckets& groups) const {
    BL_ASSIGN_OR_RETURN(model::StepPlan plan,
                        plan_in_groups(backbone_, topology_, grouped_, tokens_, groups));
    plan.strategy = to_string(Balance::kTwoModule);
    plan.digest = model::plan_digest(plan);
    return plan;
  }

  /// Pictures and micro-batches, one after the other.
  std::uint64_t slowest_group_ns(const TwoModulePlan& both) const {
    std::vector<std::uint64_t> times(groups_, 0);
    for (const PlacedPicture& picture : both.pictures.pictures) {
      times[picture.bucket] += picture.cost_ns;
    }
    for (model::HdpRank rank; rank.value < both.plan.ranks.size(); ++rank) {
      const model::Coordinates at = topology_.coordinates(rank);
      if (at[model::Axis::kCp] != 0) continue;  // All members of a group work alike.
      for (const model::MicroBatch& micro_batch : both.plan.micro_batches_of(rank)) {
        times[at[model::Axis::kDp]] += both.plan.tasks[micro_batch.task.value].cost_ns;
      }
    }
    return *std::ranges::max_element(times);
  }

  const CostModel& encoder_;
  const CostModel& backbone_;
  const model::Topology& topology_;
  const std::vector<model::SampleMeta>& samples_;
  const std::vector<model::PlanSample> tokens_;
  const std::uint32_t groups_;
  const GroupedOptions grouped_;
};

}  // namespace

Result<TwoModulePlan> plan_two_module(const CostModel& encoder, const CostModel& backbone,
                                      const model::Topology& topology,
                                      const TwoModuleOptions& options,
                                      std::vector<model::SampleMeta> samples) {
  if (options.pictures == Spread::kHdp) {
    return Status::invalid(
        "two_module with pictures along hdp: it knows them along world, where ranks exchange "
        "embeddings, and along dp, where pictures stay with their samples");
  }
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  const TwoModules modules(encoder, backbone, topology, options, samples);
  return options.pictures == Spread::kWorld ? modules.apart() : modules.together();
}

}  // namespace batchloom::planning
