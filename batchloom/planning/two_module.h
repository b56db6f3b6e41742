// SPDX-License-Identifier: Apache-2.0
// Vision-language models: an encoder turns pictures into embeddings, a backbone trains on tokens,
// and a step may be heavy for one and light for the other. Two ways to even out both:
//
//   Spread::kWorld  Ranks exchange embeddings. Pictures go to all ranks, by encoder time; samples
//                   to the groups along dp, by backbone time. The backbone begins when all pictures
//                   are encoded: the step takes the slowest encoder plus the slowest group.
//   Spread::kDp     A sample's pictures stay in its group. Samples go to groups such that the
//                   largest sum of encoder and backbone time is least.
//
// Both: longest processing time first by the time that counts, then exchanges between the fullest
// and the emptiest (bucket_swaps.h). Within a group micro-batches are made as by two_level.
// docs/design/0008-sample-graph.md says what was open, and why so.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/pictures.h"

namespace batchloom::planning {

struct TwoModuleOptions {
  std::uint32_t capacity_tokens = 8192;  ///< Of a micro-batch on one rank.
  Spread pictures = Spread::kWorld;      ///< Or kDp.
};

struct TwoModulePlan {
  model::StepPlan plan;  ///< The backbone's; its times are those of the backbone alone.
  PictureAssignment pictures;
  std::uint64_t makespan_ns = 0;     ///< Of both modules.
  std::uint64_t lower_bound_ns = 0;  ///< Of both, for this way to spread pictures.
};

/// Pure: samples in any order give the same bytes. `invalid`: pictures along hdp; as pictures_of()
/// and plan_grouped().
Result<TwoModulePlan> plan_two_module(const CostModel& encoder, const CostModel& backbone,
                                      const model::Topology& topology,
                                      const TwoModuleOptions& options,
                                      std::vector<model::SampleMeta> samples);

}  // namespace batchloom::planning
