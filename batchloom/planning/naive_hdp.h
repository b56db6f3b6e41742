// SPDX-License-Identifier: Apache-2.0
// "ByteScale" (arXiv 2502.21231), algorithm 1, in parts: as a baseline (baselines.h), and as what
// no plan of ours may be worse than (hdp.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/hdp_costs.h"

namespace batchloom::planning {

/// What the algorithm deals: a sample and its ranks, or a bin of samples on one rank.
struct NaiveItem {
  std::uint32_t degree = 1;
  model::OffloadRatio offload = {};
  model::IndexRange rows = {};  ///< Of NaiveItems::rows.
  std::uint64_t tokens = 0;
  std::uint64_t attention_ns = 0;  ///< Of all its rows, on one rank.
};

struct NaiveItems {
  std::vector<NaiveItem> items;
  std::vector<std::uint32_t> rows;

  std::span<const std::uint32_t> rows_of(const NaiveItem& item) const {
    return std::span(rows).subspan(item.rows.begin, item.rows.size());
  }
};

/// Those that need several ranks in the order of the samples, then the bins. All have one rank, as
/// long as choose_degrees() has not been called. Linear time.
NaiveItems naive_items(const HdpCosts& costs, std::span<const model::PlanSample> samples);

/// The degree of each sample that needs several ranks: that of equation 3, solved by r = min(1,
/// time of a layer / time to copy its activations), and 0 where that saves less than one rank, or
/// without `offload`. `invalid`: a sample that needs more ranks than there are.
Status choose_degrees(const HdpCosts& costs, const CostModel& model, bool offload,
                      std::span<const model::PlanSample> samples, NaiveItems& items);

/// When all are through that are dealt to the ranks in turn, without pipeline stages, exchanges and
/// copies, which only add to it. Of one layer. O(the ranks of all items).
std::uint64_t naive_floor_ns(const HdpCosts& costs, const NaiveItems& items);

/// The plan that deals them so, named `strategy`. `links`: as in timed_plan.h.
Result<model::StepPlan> deal_naively(const HdpCosts& costs, const CostModel& model,
                                     const model::Topology& topology, std::string_view strategy,
                                     std::vector<model::PlanSample> samples,
                                     const NaiveItems& items, bool links);

}  // namespace batchloom::planning
