// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/baselines.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/task_list.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

/// The first bin with room for an item, in O(log bins): a tree of maxima.
class FirstFit {
 public:
  FirstFit(std::size_t bins, std::uint64_t room) {
    while (leaves_ < bins) leaves_ *= 2;
    most_.assign(2 * leaves_, room);
  }

  /// Precondition: one of the bins has room.
  std::size_t take(std::uint64_t size) {
    std::size_t node = 1;
    while (node < leaves_) node = most_[2 * node] >= size ? 2 * node : 2 * node + 1;
    const std::size_t bin = node - leaves_;
    most_[node] -= size;
    while (node > 1) {
      node /= 2;
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
    }
    return bin;
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<std::uint64_t> most_;  // By node, the children of k being 2k and 2k + 1.
};

using RowBins = std::vector<std::vector<std::uint32_t>>;

/// By rows, each of which fits into `room`.
RowBins pack_in_order(const std::vector<model::PlanSample>& samples, std::uint64_t room) {
  FirstFit bins(samples.size(), room);
  RowBins batches;
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    const std::size_t bin = bins.take(samples[row].tokens);
    if (bin >= batches.size()) batches.resize(bin + 1);
    batches[bin].push_back(row);
  }
  return batches;
}

/// The smallest number of ranks that divides all of them and holds the context.
std::uint32_t group_ranks(std::uint32_t context, std::uint32_t capacity, std::uint32_t ranks) {
  for (std::uint32_t size = 1; size < ranks; ++size) {
    if (ranks % size == 0 && std::uint64_t{size} * capacity >= context) return size;
  }
  return ranks;
}

}  // namespace

std::vector<std::vector<model::HdpRank>> fixed_groups(const StrategyInputs& inputs) {
  const model::Topology& topology = inputs.topology;
  const std::uint32_t ranks = topology.hdp_size();
  std::vector<std::vector<model::HdpRank>> groups;
  if (inputs.context_tokens == 0) {
    groups.resize(topology.extent(model::Axis::kDp));
    for (model::HdpRank rank; rank.value < ranks; ++rank) {
      groups[topology.coordinates(rank)[model::Axis::kDp]].push_back(rank);
    }
    return groups;
  }
  const std::uint32_t size = group_ranks(inputs.context_tokens, inputs.capacity_tokens, ranks);
  for (std::uint32_t first = 0; first < ranks; first += size) {
    groups.push_back(ranks_from(first, size, ranks));
  }
  return groups;
}

Status check_fits_groups(const StrategyInputs& inputs, std::size_t group_ranks,
                         std::span<const model::PlanSample> samples) {
  const std::uint64_t room = group_ranks * std::uint64_t{inputs.capacity_tokens};
  for (const model::PlanSample& sample : samples) {
    if (sample.tokens <= room) continue;
    return Status::does_not_fit(
        fmt::format("{} does not fit: a group of {} ranks holds {} tokens each",
                    sample_text(sample), group_ranks, inputs.capacity_tokens));
  }
  return Status::ok();
}

Result<model::StepPlan> plan_static_cp(const StrategyInputs& inputs,
                                       std::vector<model::PlanSample> samples) {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  BL_ASSIGN_OR_RETURN(const HdpCosts costs,
                      HdpCosts::create(inputs.costs, {.ranks = inputs.topology.hdp_size(),
                                                      .capacity_tokens = inputs.capacity_tokens}));
  const auto groups = fixed_groups(inputs);
  const std::uint64_t room = groups[0].size() * std::uint64_t{inputs.capacity_tokens};
  BL_RETURN_IF_ERROR(check_fits_groups(inputs, groups[0].size(), samples));
  RowBins batches = pack_in_order(samples, room);
  batches.resize((batches.size() + groups.size() - 1) / groups.size() * groups.size());
  TaskList tasks(costs, samples);
  for (std::size_t i = 0; i < batches.size(); ++i) tasks.add(groups[i % groups.size()], batches[i]);
  PlanDraft draft = std::move(tasks).take();
  return make_timed_plan(inputs.topology, "static_cp", std::move(samples), std::move(draft),
                         inputs.costs);
}

}  // namespace batchloom::planning
