// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/rank_spans.h"

#include <algorithm>
#include <tuple>

namespace batchloom::simulator {

std::vector<RankSpan> rank_spans(const model::StepPlan& plan, const planning::StepTime& time) {
  std::vector<RankSpan> spans;
  for (const planning::EventTime& event : time.events) {
    const model::Task& task = plan.tasks[event.task.value];
    const planning::TaskTime& parts = time.tasks[event.task.value];
    const planning::TimeParts& phase =
        event.phase == model::Phase::kForward ? parts.forward : parts.backward;
    for (const model::HdpRank member : plan.members_of(task)) {
      spans.push_back({.rank = member.value,
                       .stage = event.stage,
                       .phase = event.phase,
                       .ring = task.members.size(),
                       .begin_ns = event.begin_ns,
                       .end_ns = event.end_ns,
                       .compute_ns = phase.compute_ns});
    }
  }
  std::ranges::stable_sort(spans, {}, [](const RankSpan& span) {
    return std::tuple(span.rank, span.stage, span.begin_ns);
  });
  return spans;
}

}  // namespace batchloom::simulator
