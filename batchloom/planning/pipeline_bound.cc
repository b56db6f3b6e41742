// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_bound.h"

#include <algorithm>

namespace batchloom::planning {
namespace {

void lower(PhaseTimes& least, const PhaseTimes& to) {
  least.forward_ns = std::min(least.forward_ns, to.forward_ns);
  least.backward_ns = std::min(least.backward_ns, to.backward_ns);
}

/// Of any micro-batch that samples of the problem can be in. Precondition: there are samples.
PhaseTimes least_micro_batch(const PipelineCosts& pipeline, const HdpCosts& costs,
                             const HdpProblem& problem) {
  PhaseTimes least{UINT64_MAX, UINT64_MAX};
  const std::vector<PhaseTimes> rest = least_phases_from(pipeline, costs);
  for (const ShortSample& sample : problem.shorts) {
    const std::uint64_t forward_ns =
        std::min(sample.attention_ns, pipeline.attention_forward_ns(sample.tokens));
    lower(least, {rest[sample.tokens].forward_ns + forward_ns,
                  rest[sample.tokens].backward_ns + sample.attention_ns - forward_ns});
  }
  for (const LongSample& sample : problem.longs) {
    for (std::uint32_t degree = sample.degrees.min; degree <= sample.degrees.max; ++degree) {
      lower(least, costs.gang_phases(sample.attention_ns, sample.tokens, degree));
    }
  }
  return least;
}

}  // namespace

std::vector<PhaseTimes> least_phases_from(const PipelineCosts& pipeline, const HdpCosts& costs) {
  const std::uint32_t capacity = costs.shape().capacity_tokens;
  std::vector<PhaseTimes> least(capacity + std::size_t{1});
  least[capacity] = pipeline.pack(costs, 0, 0, capacity);
  for (std::uint32_t tokens = capacity; --tokens > 0;) {
    least[tokens] = pipeline.pack(costs, 0, 0, tokens);
    lower(least[tokens], least[tokens + 1]);
  }
  return least;
}

PipelineBound pipeline_bound(const PipelineCosts& pipeline, const HdpCosts& costs,
                             const HdpProblem& problem) {
  const std::uint64_t stages = pipeline.stages();
  PipelineBound bound{problem.work_bound_ns, problem.longest_bound_ns * stages};
  if (stages > 1 && problem.longs.size() + problem.shorts.size() > 0) {
    bound.work_ns += (stages - 1) * least_micro_batch(pipeline, costs, problem).total_ns();
  }
  return bound;
}

void state_bound(const PipelineBound& bound, PlanDraft& draft) {
  draft.lower_bound_ns = bound.lower_bound_ns();
  draft.bound_term =
      bound.work_ns >= bound.longest_ns ? model::BoundTerm::kWork : model::BoundTerm::kLongest;
}

}  // namespace batchloom::planning
