// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "batchloom/planning/baselines.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/task_list.h"

namespace batchloom::planning {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kAllOffloaded = model::kOffloadAll.value;
constexpr std::uint64_t kLayersOnDevice = 2;  ///< Layers that stay on the device.
constexpr std::uint64_t kCopyNsPerS = 1'000'000'000;

/// Equation 3: the fewest ranks for a sample, and what part of its activations goes to the host.
class FewestRanks {
 public:
  FewestRanks(const CostModel& model, const HdpShape& shape) : model_(model), shape_(shape) {}

  NaiveItem solve(std::uint32_t tokens) const {
    NaiveItem item;
    item.degree = (tokens + shape_.capacity_tokens - 1) / shape_.capacity_tokens;
    const std::uint64_t ratio = hidden_ratio(tokens);
    if (!shape_.offload || model_.layers <= kLayersOnDevice || !saves_a_rank(tokens, ratio))
      return item;
    std::uint32_t degree = 1;
    std::uint32_t enough = item.degree;
    while (degree < enough) {  // Bisection: more ranks hold more.
      const std::uint32_t middle = degree + (enough - degree) / 2;
      if (holds(tokens, middle, ratio)) {
        enough = middle;
      } else {
        degree = middle + 1;
      }
    }
    item.degree = degree;
    item.offload = model::OffloadRatio(static_cast<std::uint32_t>(ratio));
    return item;
  }

 private:
  /// The largest with ratio x activations <= time of a layer x bandwidth, and at most all. Both
  /// phases copy, and forward is the shorter one. Both sides shrink alike on more ranks.
  std::uint64_t hidden_ratio(std::uint32_t tokens) const {
    const Wide bytes = Wide{tokens} * model_.activation_bytes_per_token;
    const Wide time_ns =
        Wide{model_.attention_forward.time_ns(tokens)} + model_.linear_forward.time_ns(tokens);
    if (bytes == 0 || model_.copy_bytes_per_s == 0) return kAllOffloaded;
    const Wide in_time = time_ns * model_.copy_bytes_per_s / kCopyNsPerS;
    return in_time >= bytes ? kAllOffloaded
                            : static_cast<std::uint64_t>(in_time * kAllOffloaded / bytes);
  }

  /// ratio >= min(1, layers x Act(C) / ((layers - 2) x Act(s))).
  bool saves_a_rank(std::uint32_t tokens, std::uint64_t ratio) const {
    if (ratio == kAllOffloaded) return true;
    return Wide{ratio} * (model_.layers - kLayersOnDevice) * tokens >=
           Wide{model_.layers} * shape_.capacity_tokens * kAllOffloaded;
  }

  /// (2 + (1 - ratio)(layers - 2)) x share <= layers x C.
  bool holds(std::uint32_t tokens, std::uint32_t degree, std::uint64_t ratio) const {
    const std::uint64_t share = (tokens + std::uint64_t{degree} - 1) / degree;
    const Wide kept = kLayersOnDevice * kAllOffloaded +
                      Wide{kAllOffloaded - ratio} * (model_.layers - kLayersOnDevice);
    return kept * share <= Wide{model_.layers} * shape_.capacity_tokens * kAllOffloaded;
  }

  const CostModel& model_;
  const HdpShape& shape_;
};

/// Bins of the capacity: the longest that fits, again and again.
void add_bins(const std::vector<model::PlanSample>& samples, std::vector<std::uint32_t> pool,
              std::uint32_t capacity, std::vector<NaiveItem>& items) {
  std::ranges::stable_sort(pool, std::greater<>(),
                           [&](std::uint32_t row) { return samples[row].tokens; });
  std::set<std::uint32_t> left;  // Places in the pool.
  for (std::uint32_t place = 0; place < pool.size(); ++place) left.insert(left.end(), place);
  while (!left.empty()) {
    NaiveItem bin;
    std::uint32_t room = capacity;
    for (;;) {
      const auto fits = std::ranges::lower_bound(
          pool, room, std::greater<>(), [&](std::uint32_t row) { return samples[row].tokens; });
      const auto next = left.lower_bound(static_cast<std::uint32_t>(fits - pool.begin()));
      if (next == left.end()) break;
      bin.rows.push_back(pool[*next]);
      room -= samples[pool[*next]].tokens;
      left.erase(next);
    }
    items.push_back(std::move(bin));
  }
}

}  // namespace

Result<std::vector<NaiveItem>> naive_items(const HdpCosts& costs, const CostModel& model,
                                           const std::vector<model::PlanSample>& samples) {
  const HdpShape& shape = costs.shape();
  const FewestRanks equation(model, shape);
  std::vector<NaiveItem> items;
  std::vector<std::uint32_t> pool;
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    if (samples[row].tokens <= shape.capacity_tokens) {
      pool.push_back(row);
      continue;
    }
    NaiveItem item = equation.solve(samples[row].tokens);
    if (item.degree > shape.ranks) {
      return Status::does_not_fit(
          fmt::format("{} does not fit: it needs {} ranks of {} tokens each, with {}/{} of its "
                      "activations on the host; there are {}",
                      sample_text(samples[row]), item.degree, shape.capacity_tokens,
                      item.offload.value, kAllOffloaded, shape.ranks));
    }
    item.rows.push_back(row);
    items.push_back(std::move(item));
  }
  add_bins(samples, std::move(pool), shape.capacity_tokens, items);
  return items;
}

namespace {

/// Algorithm 1, with equation 3 or without any offload. Of one layer.
Result<PlanDraft> deal_naive(const StrategyInputs& inputs, bool offload,
                             const std::vector<model::PlanSample>& samples) {
  const std::uint32_t ranks = inputs.topology.hdp_size();
  BL_ASSIGN_OR_RETURN(const HdpCosts costs,
                      HdpCosts::create(inputs.costs, {.ranks = ranks,
                                                      .capacity_tokens = inputs.capacity_tokens,
                                                      .offload = offload}));
  BL_ASSIGN_OR_RETURN(const auto items, naive_items(costs, inputs.costs, samples));
  TaskList tasks(costs, samples);
  std::uint32_t next = 0;
  for (const NaiveItem& item : items) {
    tasks.add(ranks_from(next, item.degree, ranks), item.rows, item.offload);
    next = (next + item.degree) % ranks;
  }
  return std::move(tasks).take();
}

}  // namespace

Result<model::StepPlan> plan_naive_hdp(const StrategyInputs& inputs,
                                       std::vector<model::PlanSample> samples) {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  Result<PlanDraft> draft = deal_naive(inputs, false, samples);
  if (inputs.offload) {
    Result<PlanDraft> fewer_ranks = deal_naive(inputs, true, samples);
    const bool better =
        fewer_ranks.is_ok() && (!draft.is_ok() || fewer_ranks->makespan_ns < draft->makespan_ns);
    if (better || !draft.is_ok()) draft = std::move(fewer_ranks);
  }
  BL_RETURN_IF_ERROR(draft.status());
  scale(*draft, inputs.costs.layers);
  return make_plan(inputs.topology, "naive_hdp", std::move(samples), std::move(*draft));
}

}  // namespace batchloom::planning
