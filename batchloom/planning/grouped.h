// SPDX-License-Identifier: Apache-2.0
// Balance in fixed groups: the ranks along cp form a group, each sample is cut over all of one
// group, and every group runs the same number of micro-batches.
//
//  1. Samples go to groups: dealt in order (none), by longest processing time (lpt, two_level), or
//     by differencing (kk).
//  2. A group's samples go to micro-batches of at most the capacity: first-fit by descending length
//     (none, lpt, kk), or so that they cost the same (two_level).
//  3. A group's micro-batches run by descending cost, so that the n-th of all groups are alike.
//     Groups with fewer run fillers: one token, which does not count.
//
// Costs are those of hdp_costs.h, a sample's attention and linear work being divided evenly; the
// makespan is that of step_time.h without links, pipeline stages included.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "batchloom/model/step_plan.h"
#include "batchloom/planning/balance.h"
#include "batchloom/planning/cost_model.h"

namespace batchloom::planning {

enum class GroupedBalance : std::uint8_t { kNone, kLpt, kKarmarkarKarp, kTwoLevel };

/// "none", "lpt", "kk" or "two_level".
std::string_view to_string(GroupedBalance balance);

struct GroupedOptions {
  GroupedBalance balance = GroupedBalance::kTwoLevel;
  std::uint32_t capacity_tokens = 8192;  ///< Of a micro-batch on one rank.
};

/// Pure: samples in any order give the same bytes. The plan's lower bound is one for groups: the
/// work, spread evenly over them, or the longest sample alone; with P pipeline stages, the work of
/// one and (P - 1) times the least that a micro-batch can take forward, and backward, or the
/// longest sample's way through all. `invalid`: a capacity of 0, a sample without tokens, one given
/// twice, or one that a group cannot hold.
Result<model::StepPlan> plan_grouped(const CostModel& model, const model::Topology& topology,
                                     const GroupedOptions& options,
                                     std::vector<model::PlanSample> samples);

/// The same where step 1 has been done elsewhere: `group_of` the samples, in the order of their
/// ids. The lower bound is still that of all ways to group them. Precondition: a group below the
/// extent of dp for each sample.
Result<model::StepPlan> plan_in_groups(const CostModel& model, const model::Topology& topology,
                                       const GroupedOptions& options,
                                       std::vector<model::PlanSample> samples,
                                       const Buckets& group_of);

/// The work of samples on groups, in ns of all layers of a pipeline stage on each member.
struct GroupedWork {
  /// By sample, in the order given: its share of attention, and its tokens at the rate of the
  /// cheapest pack. What groups are balanced by.
  std::vector<std::uint64_t> by_sample;
  /// All groups together take no less, bubbles included.
  std::uint64_t least_total_ns = 0;
  /// The group with the longest sample takes no less, on all stages.
  std::uint64_t least_longest_ns = 0;
};

/// `invalid`: a capacity of 0, a sample that a group cannot hold.
Result<GroupedWork> grouped_work(const CostModel& model, const model::Topology& topology,
                                 const GroupedOptions& options,
                                 std::span<const model::PlanSample> samples);

}  // namespace batchloom::planning
