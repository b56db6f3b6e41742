// SPDX-License-Identifier: Apache-2.0
// Tasks in the order in which pipelines run them, and when each rank is through: what searches try
// many of. The times are those of pipeline_time.h, which walks any events; here slots are least,
// and so all stages can be walked in step:
//
//   slot k goes forward on stage p at beat 2k + p, and backward at beat 2k + 2P - 1 - p.
//
// On a stage, beats follow the order of 1F1B; an event needs only what lies at earlier beats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/planning/pipeline_costs.h"
#include "batchloom/planning/plan_draft.h"

namespace batchloom::planning {

/// Of one layer.
struct PipelineEnds {
  std::uint64_t makespan_ns = 0;
  std::vector<std::uint64_t> end_ns;  ///< By HDP rank.
};

/// One thread at a time.
class PipelineTasks {
 public:
  explicit PipelineTasks(std::uint32_t ranks) : next_slot_(ranks, 0) {}

  /// In the slot after the last one of any member: each rank runs its tasks in the order of the
  /// calls. `samples` by row.
  void add(std::span<const model::HdpRank> members, std::span<const model::SampleIndex> samples,
           const PhaseTimes& phases, model::OffloadRatio offload = {});

  /// O(tasks x members x stages). Precondition: at least one stage.
  PipelineEnds ends(std::uint32_t stages) const;

  /// The plan that make_plan() turns into one whose least slots are these; times are of one layer,
  /// and there is no makespan.
  PlanDraft draft() const;

 private:
  struct Slotted {
    model::IndexRange members;
    model::IndexRange samples;
    PhaseTimes phases;
    model::OffloadRatio offload;
    std::uint32_t slot = 0;
  };

  std::vector<Slotted> tasks_;
  std::vector<model::HdpRank> members_;
  std::vector<model::SampleIndex> samples_;
  std::vector<std::uint32_t> next_slot_;  // By rank.
};

/// When a rank is through that no ring couples to others. One thread at a time.
class LonePipeline {
 public:
  /// Precondition: at least one stage.
  explicit LonePipeline(std::uint32_t stages) : free_ns_(stages, 0) {}

  /// Tasks in order. O(tasks x stages).
  std::uint64_t end_ns(std::span<const PhaseTimes> tasks);

 private:
  std::vector<std::uint64_t> free_ns_;  // By stage.
  std::vector<std::uint64_t> end_ns_;   // By task and phase.
};

}  // namespace batchloom::planning
