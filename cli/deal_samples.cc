// SPDX-License-Identifier: Apache-2.0
#include "cli/deal_samples.h"

#include "batchloom/model/plan_digest.h"

namespace batchloom::cli {
namespace {

using model::IndexRange;
using model::StepPlan;

std::uint32_t size_of(const auto& items) {
  return static_cast<std::uint32_t>(items.size());
}

/// The last rank so far, with the samples that are its.
void add_rank(StepPlan& plan, std::uint32_t rank, std::uint32_t ranks) {
  const std::uint32_t first_piece = size_of(plan.pieces);
  for (std::uint32_t i = rank; i < size_of(plan.samples); i += ranks) {
    plan.pieces.push_back({model::SampleIndex(i), 0, plan.samples[i].tokens});
    if (i > UINT32_MAX - ranks) break;
  }
  plan.micro_batches.push_back({model::TaskIndex(rank), {first_piece, size_of(plan.pieces)}});
  plan.ranks.push_back({rank, rank + 1});
  plan.members.emplace_back(rank);
  plan.tasks.push_back({.members = IndexRange{rank, rank + 1}, .offload = {}, .cost_ns = 0});
}

}  // namespace

Result<StepPlan> deal_samples(const store::IndexedStep& step, std::uint32_t ranks) {
  StepPlan plan;
  BL_ASSIGN_OR_RETURN(plan.topology,
                      model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}));
  plan.strategy = "dealt";
  plan.samples = step.plan.samples;
  plan.global_valid_labels = step.plan.global_valid_labels;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) add_rank(plan, rank, ranks);
  for (const model::Phase phase : {model::Phase::kForward, model::Phase::kBackward}) {
    for (std::uint32_t task = 0; task < ranks; ++task) {
      plan.events.push_back({model::TaskIndex(task), phase});
    }
  }
  plan.digest = model::plan_digest(plan);
  return plan;
}

}  // namespace batchloom::cli
