// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/naive_hdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/baselines.h"
#include "batchloom/planning/fit_pool.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/task_list.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kAllOffloaded = model::kOffloadAll.value;
constexpr std::uint64_t kLayersOnDevice = 2;  ///< Layers that stay on the device.
constexpr std::uint64_t kCopyNsPerS = 1'000'000'000;

/// Equation 3: the fewest ranks for a sample, and what part of its activations goes to the host.
class FewestRanks {
 public:
  FewestRanks(const CostModel& model, const HdpShape& shape, bool offload)
      : model_(model), shape_(shape), offload_(offload) {}

  void solve(std::uint32_t tokens, NaiveItem& item) const {
    item.degree = (tokens + shape_.capacity_tokens - 1) / shape_.capacity_tokens;
    item.offload = {};
    const std::uint64_t ratio = hidden_ratio(tokens);
    if (!offload_ || model_.layers <= kLayersOnDevice || !saves_a_rank(tokens, ratio)) return;
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
  const bool offload_;
};

void add_row(const HdpCosts& costs, std::uint32_t row, std::uint32_t tokens, NaiveItem& item,
             NaiveItems& to) {
  to.rows.push_back(row);
  item.rows.end = static_cast<std::uint32_t>(to.rows.size());
  item.tokens += tokens;
  item.attention_ns += costs.attention_ns(tokens);
}

/// Bins of the capacity: the longest that fits, again and again.
void add_bins(const HdpCosts& costs, FitPool pool, NaiveItems& to) {
  for (;;) {
    const auto begin = static_cast<std::uint32_t>(to.rows.size());
    NaiveItem bin{.rows = {begin, begin}};
    std::uint32_t room = costs.shape().capacity_tokens;
    while (const auto taken = pool.take_at_most(room)) {
      add_row(costs, taken->row, taken->tokens, bin, to);
      room -= taken->tokens;
    }
    if (bin.rows.size() == 0) return;
    to.items.push_back(bin);
  }
}

}  // namespace

NaiveItems naive_items(const HdpCosts& costs, std::span<const model::PlanSample> samples) {
  const std::uint32_t capacity = costs.shape().capacity_tokens;
  NaiveItems result;
  result.rows.reserve(samples.size());
  for (std::uint32_t row = 0; row < samples.size(); ++row) {
    if (samples[row].tokens <= capacity) continue;
    const auto begin = static_cast<std::uint32_t>(result.rows.size());
    NaiveItem item{.rows = {begin, begin}};
    add_row(costs, row, samples[row].tokens, item, result);
    result.items.push_back(item);
  }
  add_bins(costs, FitPool(samples, capacity), result);
  return result;
}

Status choose_degrees(const HdpCosts& costs, const CostModel& model, bool offload,
                      std::span<const model::PlanSample> samples, NaiveItems& items) {
  const HdpShape& shape = costs.shape();
  const FewestRanks equation(model, shape, offload);
  for (NaiveItem& item : items.items) {
    if (item.tokens <= shape.capacity_tokens) break;  // Bins follow.
    const model::PlanSample& sample = samples[items.rows_of(item).front()];
    equation.solve(sample.tokens, item);
    if (item.degree <= shape.ranks) continue;
    return Status::does_not_fit(
        fmt::format("{} does not fit: it needs {} ranks of {} tokens each, with {}/{} of its "
                    "activations on the host; there are {}",
                    sample_text(sample), item.degree, shape.capacity_tokens, item.offload.value,
                    kAllOffloaded, shape.ranks));
  }
  return Status::ok();
}

std::uint64_t naive_floor_ns(const HdpCosts& costs, const NaiveItems& items) {
  const std::uint32_t ranks = costs.shape().ranks;
  std::vector<std::uint64_t> free_ns(ranks, 0);
  std::uint32_t next = 0;
  const auto for_each_member = [&](const NaiveItem& item, auto visit) {
    for (std::uint32_t i = 0, rank = next; i < item.degree; ++i) {
      visit(free_ns[rank]);
      if (++rank == ranks) rank = 0;
    }
  };
  for (const NaiveItem& item : items.items) {
    std::uint64_t end_ns = 0;
    for_each_member(item, [&](std::uint64_t free) { end_ns = std::max(end_ns, free); });
    end_ns += (item.attention_ns + item.degree - 1) / item.degree;
    end_ns +=
        costs.rest_ns(static_cast<std::uint32_t>((item.tokens + item.degree - 1) / item.degree));
    for_each_member(item, [&](std::uint64_t& free) { free = end_ns; });
    next = (next + item.degree) % ranks;
  }
  return std::ranges::max(free_ns);
}

Result<model::StepPlan> deal_naively(const HdpCosts& costs, const CostModel& model,
                                     const model::Topology& topology, std::string_view strategy,
                                     std::vector<model::PlanSample> samples,
                                     const NaiveItems& items, bool links) {
  const std::uint32_t ranks = costs.shape().ranks;
  TaskList tasks(costs, samples);
  std::uint32_t next = 0;
  for (const NaiveItem& item : items.items) {
    tasks.add(ranks_from(next, item.degree, ranks), items.rows_of(item), item.offload);
    next = (next + item.degree) % ranks;
  }
  PlanDraft draft = std::move(tasks).take();
  return make_timed_plan(topology, strategy, std::move(samples), std::move(draft), model, links);
}

namespace {

/// With equation 3, or without any offload.
Result<model::StepPlan> plan_naively(const StrategyInputs& inputs, bool offload,
                                     const std::vector<model::PlanSample>& samples) {
  BL_ASSIGN_OR_RETURN(const HdpCosts costs,
                      HdpCosts::create(inputs.costs, {.ranks = inputs.topology.hdp_size(),
                                                      .capacity_tokens = inputs.capacity_tokens}));
  NaiveItems items = naive_items(costs, samples);
  BL_RETURN_IF_ERROR(choose_degrees(costs, inputs.costs, offload, samples, items));
  return deal_naively(costs, inputs.costs, inputs.topology, "naive_hdp", samples, items, false);
}

}  // namespace

Result<model::StepPlan> plan_naive_hdp(const StrategyInputs& inputs,
                                       std::vector<model::PlanSample> samples) {
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  Result<model::StepPlan> plan = plan_naively(inputs, false, samples);
  if (!inputs.offload) return plan;
  Result<model::StepPlan> fewer_ranks = plan_naively(inputs, true, samples);
  const bool better =
      !plan.is_ok() || (fewer_ranks.is_ok() && fewer_ranks->makespan_ns < plan->makespan_ns);
  return better ? fewer_ranks : plan;
}

}  // namespace batchloom::planning
