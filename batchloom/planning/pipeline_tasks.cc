// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/pipeline_tasks.h"

#include <algorithm>
#include <numeric>

namespace batchloom::planning {
namespace {

/// Calls visit(slot, stage, backward) for every event of slots [0, slots), so that each comes after
/// those it needs.
template <class Visit>
void for_each_event(std::uint32_t slots, std::uint32_t stages, Visit visit) {
  if (slots == 0) return;
  const std::uint32_t beats = 2 * (slots - 1) + 2 * stages;
  for (std::uint32_t beat = 0; beat < beats; ++beat) {
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      const bool backward = (beat + stage) % 2 == 1;
      const std::uint32_t first = backward ? 2 * stages - 1 - stage : stage;
      if (beat < first || (beat - first) / 2 >= slots) continue;
      visit((beat - first) / 2, stage, backward);
    }
  }
}

}  // namespace

void PipelineTasks::add(std::span<const model::HdpRank> members,
                        std::span<const model::SampleIndex> samples, const PhaseTimes& phases,
                        model::OffloadRatio offload) {
  Slotted task{.members = {static_cast<std::uint32_t>(members_.size()), 0},
               .samples = {static_cast<std::uint32_t>(samples_.size()), 0},
               .phases = phases,
               .offload = offload};
  members_.insert(members_.end(), members.begin(), members.end());
  samples_.insert(samples_.end(), samples.begin(), samples.end());
  task.members.end = static_cast<std::uint32_t>(members_.size());
  task.samples.end = static_cast<std::uint32_t>(samples_.size());
  for (const model::HdpRank rank : members) {
    task.slot = std::max(task.slot, next_slot_[rank.value]);
  }
  for (const model::HdpRank rank : members) next_slot_[rank.value] = task.slot + 1;
  tasks_.push_back(task);
}

PipelineEnds PipelineTasks::ends(std::uint32_t stages) const {
  const auto ranks = next_slot_.size();
  const std::uint32_t slots = ranks == 0 ? 0 : std::ranges::max(next_slot_);
  std::vector<std::uint32_t> begins(slots + std::size_t{1}, 0);
  for (const Slotted& task : tasks_) ++begins[task.slot + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> order(tasks_.size());
  std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
  for (std::uint32_t task = 0; task < tasks_.size(); ++task) {
    order[next[tasks_[task].slot]++] = task;
  }
  std::vector<std::uint64_t> free_ns(ranks * stages, 0);
  std::vector<std::uint64_t> forward_end_ns(tasks_.size(), 0);  // On the stage before.
  std::vector<std::uint64_t> backward_end_ns(tasks_.size(), 0);
  for_each_event(slots, stages, [&](std::uint32_t slot, std::uint32_t stage, bool backward) {
    std::uint64_t* const free_on_stage = free_ns.data() + stage * ranks;
    for (std::uint32_t place = begins[slot]; place < begins[slot + 1]; ++place) {
      const Slotted& task = tasks_[order[place]];
      std::uint64_t& end_ns = (backward ? backward_end_ns : forward_end_ns)[order[place]];
      const auto members = std::span(members_).subspan(task.members.begin, task.members.size());
      for (const model::HdpRank rank : members) {
        end_ns = std::max(end_ns, free_on_stage[rank.value]);
      }
      end_ns += backward ? task.phases.backward_ns : task.phases.forward_ns;
      for (const model::HdpRank rank : members) free_on_stage[rank.value] = end_ns;
    }
  });
  // Whatever a rank runs ends with a backward phase on its first stage.
  free_ns.resize(ranks);
  PipelineEnds ends{.makespan_ns = 0, .end_ns = std::move(free_ns)};
  if (ranks > 0) ends.makespan_ns = std::ranges::max(ends.end_ns);
  return ends;
}

PlanDraft PipelineTasks::draft() const {
  PlanDraft draft;
  draft.members = members_;
  draft.samples = samples_;
  draft.tasks.reserve(tasks_.size());
  for (const Slotted& task : tasks_) {
    draft.tasks.push_back({.start_ns = task.slot,
                           .time_ns = task.phases.total_ns(),
                           .members = task.members,
                           .samples = task.samples,
                           .offload = task.offload});
  }
  return draft;
}

std::uint64_t LonePipeline::end_ns(std::span<const PhaseTimes> tasks) {
  const auto stages = static_cast<std::uint32_t>(free_ns_.size());
  free_ns_.assign(stages, 0);
  end_ns_.assign(2 * tasks.size(), 0);
  for_each_event(static_cast<std::uint32_t>(tasks.size()), stages,
                 [&](std::uint32_t slot, std::uint32_t stage, bool backward) {
                   std::uint64_t& end = end_ns_[2 * std::size_t{slot} + (backward ? 1 : 0)];
                   end = std::max(end, free_ns_[stage]) +
                         (backward ? tasks[slot].backward_ns : tasks[slot].forward_ns);
                   free_ns_[stage] = end;
                 });
  return free_ns_[0];
}

}  // namespace batchloom::planning
