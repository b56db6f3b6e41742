// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/plan_draft.h"

namespace batchloom::planning {

/// make_plan() for a draft of one layer, where a strategy says which rank runs what, and in which
/// order: the makespan is what step_time() finds, pipeline stages included, and the draft's is not
/// looked at. The lower bound becomes that of the layers of a stage, each of which the draft's
/// bounds. `links`: the topology's, too; off: computing alone.
///
/// Preconditions: those of make_plan(); ranks begin their tasks in an order that all of a task's
/// members share.
Result<model::StepPlan> make_timed_plan(model::Topology topology, std::string_view strategy,
                                        std::vector<model::PlanSample> samples, PlanDraft draft,
                                        const CostModel& costs, bool links = false);

}  // namespace batchloom::planning
