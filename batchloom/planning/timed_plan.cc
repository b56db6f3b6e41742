// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/timed_plan.h"

#include <string>
#include <utility>

#include "batchloom/model/plan_digest.h"
#include "batchloom/planning/step_time.h"

namespace batchloom::planning {

Result<model::StepPlan> make_timed_plan(model::Topology topology, std::string_view strategy,
                                        std::vector<model::PlanSample> samples, PlanDraft draft,
                                        const CostModel& costs, bool links) {
  const std::uint32_t stages = topology.extent(model::Axis::kPp);
  const std::uint64_t bound_ns = draft.lower_bound_ns * ((costs.layers + stages - 1) / stages);
  scale(draft, costs.layers);
  model::StepPlan plan =
      make_plan(std::move(topology), std::string(strategy), std::move(samples), std::move(draft));
  BL_ASSIGN_OR_RETURN(const StepTime time, step_time(plan, costs, {.links = links}));
  plan.makespan_ns = time.step_ns;
  plan.lower_bound_ns = bound_ns;
  plan.digest = model::plan_digest(plan);
  return plan;
}

}  // namespace batchloom::planning
