// SPDX-License-Identifier: Apache-2.0
// What a task takes in each phase, on one pipeline stage.
//
// A stage has ceil(layers / stages) layers. Forward is attention_forward and linear_forward of the
// cost model and half of the launch, backward the rest, as in step_time.h: so a plan's makespan is
// the time that step_time() finds.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/planning/hdp_costs.h"

namespace batchloom::planning {

/// Immutable; thread-safe. Times are of one layer, both here and in HdpCosts.
class PipelineCosts {
 public:
  /// Precondition: at least one stage.
  PipelineCosts(const CostModel& model, std::uint32_t stages);

  std::uint32_t layers() const { return model_.layers; }
  std::uint32_t stages() const { return stages_; }
  std::uint32_t stage_layers() const { return (model_.layers + stages_ - 1) / stages_; }

  std::uint64_t attention_forward_ns(std::uint32_t tokens) const {
    return model_.attention_forward.time_ns(tokens);
  }
  /// Of whole samples on one rank: `attention_ns` and `attention_forward_ns` are the sums over
  /// them, `tokens` is at least 1.
  PhaseTimes pack(const HdpCosts& costs, std::uint64_t attention_ns,
                  std::uint64_t attention_forward_ns, std::uint32_t tokens) const;

 private:
  CostModel model_;
  std::uint32_t stages_;
};

}  // namespace batchloom::planning
