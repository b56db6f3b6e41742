// SPDX-License-Identifier: Apache-2.0
// How others lay a step onto ranks, for comparison. What their sources leave open, and what is
// chosen here: docs/design/0006-baselines.md.
//
// All of them: makespans are those of step_time.h without links, pipeline stages included, and
// there is no bound. Costs do not decide anything but in naive_hdp, where they bound what a copy
// may take. Pure: samples in any order give the same bytes. `invalid`: a capacity of 0, a sample
// without tokens, one given twice, or one that fits nowhere; the message names it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/planning/strategies.h"

namespace batchloom::planning {

/// A static mesh of groups that are large enough for the context (fixed_groups()).
///
///  1. A micro-batch is what fits into a group's capacity, first-fit in the order of the samples;
///     each sample is cut over the whole group, however short it is.
///  2. Micro-batches are dealt to the groups by turns; groups that get fewer run fillers.
///
/// MegaScale's static CP with packed sequences, the first baseline of "ByteScale" (arXiv
/// 2502.21231, section 7.1).
Result<model::StepPlan> plan_static_cp(const StrategyInputs& inputs,
                                       std::vector<model::PlanSample> samples);

/// "ByteScale", algorithm 1: what does not fit on one rank gets the fewest ranks that hold it, with
/// as much offload as hides; the rest is packed into bins of the capacity. Then all is dealt to the
/// ranks, whatever it costs. Once like that, if offload is allowed, and once without any: the plan
/// is the one that computes for less time. (Fewest ranks make the longest sample hold up all
/// others.)
Result<model::StepPlan> plan_naive_hdp(const StrategyInputs& inputs,
                                       std::vector<model::PlanSample> samples);

/// Megatron-Core's hybrid context parallelism: each sample on a power of two of ranks, balanced by
/// L^2 / ranks.
///
///  1. By descending length. A sample needs the smallest power of two of ranks that holds it.
///  2. A round: samples are cut into as many buckets as there are numbers of ranks, of equal work.
///     The first sample of the first bucket that fits goes to new ranks, or to the group of its
///     size that has least work.
///  3. The round ends where nothing fits, or where groups of another size than the first have come
///     and all ranks are within 5 %. Then what the fullest group took last is taken back while that
///     helps, and groups are doubled, the smallest first, until no rank is idle.
///  4. Rounds go on until nothing is left. Every sample is a micro-batch of its own.
Result<model::StepPlan> plan_megatron(const StrategyInputs& inputs,
                                      std::vector<model::PlanSample> samples);

/// verl's balance of samples: Karmarkar and Karp's differencing by 24,576 x L + L^2, first to the
/// groups (fixed_groups()) with equally many samples each, then inside a group to as few
/// micro-batches as the group with the most tokens needs; the lighter micro-batches at both ends.
Result<model::StepPlan> plan_verl_kk(const StrategyInputs& inputs,
                                     std::vector<model::PlanSample> samples);

/// Groups of ranks that hold equally many, by the ranks of each.
///
/// With a context: the smallest equal groups of neighbours that hold it, or all ranks where none
/// do. Without one: the ranks along cp.
std::vector<std::vector<model::HdpRank>> fixed_groups(const StrategyInputs& inputs);

/// Whether a group of so many ranks holds each of the samples: `invalid`, naming the first that it
/// does not.
Status check_fits_groups(const StrategyInputs& inputs, std::size_t group_ranks,
                         std::span<const model::PlanSample> samples);

}  // namespace batchloom::planning
