// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_bound.h"

#include <algorithm>

namespace batchloom::planning {

PipelineBound pipeline_bound(const PipelineCosts& pipeline, const HdpCosts& costs,
                             const HdpProblem& problem) {
  const std::uint64_t stages = pipeline.stages();
  PipelineBound bound{problem.work_bound_ns, problem.longest_bound_ns * stages};
  if (stages == 1) return bound;
  PhaseTimes least{UINT64_MAX, UINT64_MAX};
  const auto consider = [&least](const PhaseTimes& phases) {
    least.forward_ns = std::min(least.forward_ns, phases.forward_ns);
    least.backward_ns = std::min(least.backward_ns, phases.backward_ns);
  };
  for (const ShortSample& sample : problem.shorts) {
    consider(pipeline.pack(costs, sample.attention_ns, pipeline.attention_forward_ns(sample.tokens),
                           sample.tokens));
  }
  for (const LongSample& sample : problem.longs) {
    for (const DegreeChoice& choice : problem.choices_of(sample)) {
      consider(costs.gang_phases(sample.attention_ns, sample.tokens, choice.degree));
    }
  }
  if (!problem.shorts.empty() || !problem.longs.empty()) {
    bound.work_ns += (stages - 1) * least.total_ns();
  }
  return bound;
}

void state_bound(const PipelineBound& bound, PlanDraft& draft) {
  draft.lower_bound_ns = bound.lower_bound_ns();
  draft.bound_term =
      bound.work_ns >= bound.longest_ns ? model::BoundTerm::kWork : model::BoundTerm::kLongest;
}

}  // namespace batchloom::planning
