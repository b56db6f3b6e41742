// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/two_module.h"

#include <algorithm>
#include <utility>

#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/bucket_swaps.h"
#include "batchloom/planning/grouped.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/step_time.h"

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
    BL_ASSIGN_OR_RETURN(result.makespan_ns, slowest_group_ns(result));
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
  Result<std::uint64_t> slowest_group_ns(const TwoModulePlan& both) const {
    std::vector<std::uint64_t> pictures_ns(groups_, 0);
    for (const PlacedPicture& picture : both.pictures.pictures) {
      pictures_ns[picture.bucket] += picture.cost_ns;
    }
    BL_ASSIGN_OR_RETURN(const StepTime time, step_time(both.plan, backbone_, {.links = false}));
    std::vector<std::uint64_t> end_ns = pictures_ns;
    for (std::size_t i = 0; i < time.tasks.size(); ++i) {
      const model::HdpRank member = both.plan.members_of(both.plan.tasks[i]).front();
      const std::uint32_t group = topology_.coordinates(member)[model::Axis::kDp];
      end_ns[group] = std::max(end_ns[group], pictures_ns[group] + time.tasks[i].end_ns);
    }
    return *std::ranges::max_element(end_ns);
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
