// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/paper_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "batchloom/planning/fit_pool.h"
#include "batchloom/planning/pipeline_bound.h"
#include "batchloom/planning/pipeline_tasks.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/timed_plan.h"

namespace batchloom::planning {
namespace {

using model::HdpRank;
using model::SampleIndex;

__extension__ using Wide = unsigned __int128;

constexpr std::uint32_t kPaperLayersKept = 2;  ///< On the device, whatever is copied.

/// A sequence on several ranks, or a pack on one.
struct PaperItem {
  std::uint32_t degree = 1;
  std::uint64_t tokens = 0;
  PhaseTimes phases;
  model::OffloadRatio offload;
  std::vector<SampleIndex> rows;

  std::uint64_t work_ns() const { return degree * phases.total_ns(); }
};

enum class Rule : std::uint8_t { kDp, kPp };

class PaperBalance {
 public:
  PaperBalance(const CostModel& model, const HdpCosts& costs, const PipelineCosts& pipeline,
               const PaperBalanceOptions& options, std::span<const model::PlanSample> samples)
      : model_(model), costs_(costs), pipeline_(pipeline), options_(options), samples_(samples) {}

  Result<PipelineTasks> make(Rule rule) {
    BL_RETURN_IF_ERROR(make_items());
    make_buckets();
    deal(rule);
    return std::move(tasks_);
  }

 private:
  Status make_items();
  Status add_long(std::uint32_t row);
  std::uint32_t degree_with_offload(std::uint32_t tokens) const;
  void make_packs();
  void make_buckets();
  void deal(Rule rule);
  std::vector<std::uint32_t> targets() const;
  std::size_t take(Rule rule);
  void assign(const PaperItem& item, std::span<const std::uint32_t> lagging);

  const CostModel& model_;
  const HdpCosts& costs_;
  const PipelineCosts& pipeline_;
  const PaperBalanceOptions& options_;
  const std::span<const model::PlanSample> samples_;
  const std::uint32_t ranks_ = costs_.shape().ranks;
  std::vector<PaperItem> items_;
  std::vector<std::deque<std::size_t>> buckets_;  // Not empty, of items_.
  std::size_t turn_ = 0;                          // Of buckets_.
  std::vector<std::uint64_t> time_ns_ = std::vector<std::uint64_t>(ranks_, 0);
  PipelineTasks tasks_ = PipelineTasks(ranks_);
};

Status PaperBalance::make_items() {
  for (std::uint32_t row = 0; row < samples_.size(); ++row) {
    if (samples_[row].tokens > options_.capacity_tokens) BL_RETURN_IF_ERROR(add_long(row));
  }
  make_packs();
  return Status::ok();
}

Status PaperBalance::add_long(std::uint32_t row) {
  const std::uint32_t tokens = samples_[row].tokens;
  const std::uint32_t capacity = options_.capacity_tokens;
  const std::uint32_t degree =
      options_.offload ? degree_with_offload(tokens) : (tokens - 1) / capacity + 1;
  if (degree > ranks_) {
    return Status::does_not_fit(fmt::format(
        "sample {} of {} tokens needs {} ranks of {} tokens and there are {}; raise the capacity, "
        "allow activations on the host, or cut samples at fewer tokens (max_sample_tokens)",
        to_string(samples_[row].id), tokens, degree, capacity, ranks_));
  }
  items_.push_back({.degree = degree,
                    .tokens = tokens,
                    .phases = costs_.gang_phases(costs_.attention_ns(tokens), tokens, degree),
                    .offload = costs_.offload((tokens - 1) / degree + 1),
                    .rows = {SampleIndex(row)}});
  return Status::ok();
}

/// Equation 3, in ratios of 1/65,536. T(s) is forward of one layer, of the whole sample.
std::uint32_t PaperBalance::degree_with_offload(std::uint32_t tokens) const {
  const std::uint64_t capacity = options_.capacity_tokens;
  const auto plain = static_cast<std::uint32_t>((tokens - 1) / capacity + 1);
  if (model_.layers <= kPaperLayersKept) return plain;
  const std::uint64_t all = model::kOffloadAll.value;
  const std::uint64_t copied = model_.layers - kPaperLayersKept;
  const std::uint64_t forward_ns =
      model_.attention_forward.time_ns(tokens) + model_.linear_forward.time_ns(tokens);
  const Wide act_bytes = Wide{tokens} * model_.activation_bytes_per_token;
  // What one layer's computing hides: r x Act(s) <= T(s) x B.
  const Wide hidden_bytes = Wide{forward_ns} * model_.copy_bytes_per_s / 1'000'000'000;
  const std::uint64_t ratio = model_.copy_bytes_per_s == 0 || hidden_bytes >= act_bytes
                                  ? all
                                  : static_cast<std::uint64_t>(hidden_bytes * all / act_bytes);
  // Below this one, not even one rank is saved.
  const Wide least =
      std::min<Wide>(all, Wide{model_.layers} * capacity * all / (Wide{copied} * tokens));
  if (ratio < least) return plain;
  const Wide kept = Wide{kPaperLayersKept} * all + Wide{all - ratio} * copied;
  // A rank's share is whole tokens: of 3 layers and 5 tokens, 2 layers kept, it is 7 and not 7.5.
  const auto share = static_cast<std::uint64_t>(Wide{model_.layers} * capacity * all / kept);
  return std::min(plain, static_cast<std::uint32_t>((tokens - 1) / share + 1));
}

/// Best-fit: the longest sample left, then always the longest that still fits.
void PaperBalance::make_packs() {
  FitPool pool(samples_, options_.capacity_tokens);
  for (;;) {
    PaperItem pack;
    std::uint64_t attention_ns = 0;
    std::uint64_t attention_forward_ns = 0;
    std::uint32_t room = options_.capacity_tokens;
    while (const auto taken = pool.take_at_most(room)) {
      attention_ns += costs_.attention_ns(taken->tokens);
      attention_forward_ns += pipeline_.attention_forward_ns(taken->tokens);
      pack.rows.emplace_back(taken->row);
      room -= taken->tokens;
    }
    if (pack.rows.empty()) return;
    pack.tokens = options_.capacity_tokens - room;
    pack.phases =
        pipeline_.pack(costs_, attention_ns, attention_forward_ns, options_.capacity_tokens - room);
    items_.push_back(std::move(pack));
  }
}

void PaperBalance::make_buckets() {
  std::ranges::sort(items_, [](const PaperItem& a, const PaperItem& b) {
    return std::tuple(b.tokens, b.work_ns(), a.rows.front()) <
           std::tuple(a.tokens, a.work_ns(), b.rows.front());
  });
  Wide total = 0;
  for (const PaperItem& item : items_) total += item.work_ns();
  std::vector<std::deque<std::size_t>> buckets(options_.buckets);
  Wide before = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Wide bucket = total == 0 ? 0 : before * options_.buckets / total;
    buckets[std::min<std::size_t>(static_cast<std::size_t>(bucket), buckets.size() - 1)].push_back(
        i);
    before += items_[i].work_ns();
  }
  for (auto& bucket : buckets) {
    if (!bucket.empty()) buckets_.push_back(std::move(bucket));
  }
}

/// The next item; one is left.
std::size_t PaperBalance::take(Rule rule) {
  const std::size_t from = rule == Rule::kDp ? 0 : turn_ % buckets_.size();
  const std::size_t item = buckets_[from].front();
  buckets_[from].pop_front();
  if (buckets_[from].empty()) {
    buckets_.erase(buckets_.begin() + static_cast<std::ptrdiff_t>(from));
    turn_ = from;
  } else {
    turn_ = from + 1;
  }
  return item;
}

/// Those that lag, by their time, then by rank.
std::vector<std::uint32_t> PaperBalance::targets() const {
  const std::uint64_t last_ns = std::ranges::max(time_ns_);
  const std::uint64_t delta_ns = last_ns / 1000 * options_.delta_mill;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (last_ns - time_ns_[rank] > delta_ns) ranks.push_back(rank);
  }
  if (ranks.empty()) {
    ranks.resize(ranks_);
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::ranges::stable_sort(ranks, {}, [this](std::uint32_t rank) { return time_ns_[rank]; });
  return ranks;
}

void PaperBalance::deal(Rule rule) {
  while (!buckets_.empty()) {
    const std::vector<std::uint32_t> lagging = targets();
    std::size_t next = 0;
    while (next < lagging.size() && !buckets_.empty()) {
      const PaperItem& item = items_[take(rule)];
      assign(item, std::span(lagging).subspan(next));
      next += item.degree;
    }
  }
}

void PaperBalance::assign(const PaperItem& item, std::span<const std::uint32_t> lagging) {
  std::vector<std::uint32_t> chosen(
      lagging.begin(), lagging.begin() + static_cast<std::ptrdiff_t>(
                                             std::min<std::size_t>(item.degree, lagging.size())));
  if (chosen.size() < item.degree) {
    std::vector<bool> is_chosen(ranks_, false);
    for (const std::uint32_t rank : chosen) is_chosen[rank] = true;
    std::vector<std::uint32_t> others;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (!is_chosen[rank]) others.push_back(rank);
    }
    std::ranges::stable_sort(others, {}, [this](std::uint32_t rank) { return time_ns_[rank]; });
    others.resize(item.degree - chosen.size());
    chosen.insert(chosen.end(), others.begin(), others.end());
  }
  std::ranges::sort(chosen);
  std::vector<HdpRank> members;
  std::uint64_t begin_ns = 0;
  for (const std::uint32_t rank : chosen) {
    members.emplace_back(rank);
    begin_ns = std::max(begin_ns, time_ns_[rank]);
  }
  for (const std::uint32_t rank : chosen) time_ns_[rank] = begin_ns + item.phases.total_ns();
  tasks_.add(members, item.rows, item.phases, item.offload);
}

Result<model::StepPlan> plan_paper(Rule rule, std::string_view name, const CostModel& model,
                                   const model::Topology& topology,
                                   const PaperBalanceOptions& options,
                                   std::vector<model::PlanSample> samples) {
  if (options.buckets == 0) return Status::invalid("0 buckets: at least 1");
  BL_RETURN_IF_ERROR(sort_by_id(samples));
  BL_ASSIGN_OR_RETURN(const HdpCosts costs,
                      HdpCosts::create(model, {.ranks = topology.hdp_size(),
                                               .capacity_tokens = options.capacity_tokens,
                                               .min_share_tokens = options.min_share_tokens,
                                               .offload_any = options.offload}));
  const PipelineCosts pipeline(model, topology.extent(model::Axis::kPp));
  BL_ASSIGN_OR_RETURN(const PipelineTasks tasks,
                      PaperBalance(model, costs, pipeline, options, samples).make(rule));
  std::vector<std::uint32_t> tokens;
  for (const model::PlanSample& sample : samples) tokens.push_back(sample.tokens);
  BL_ASSIGN_OR_RETURN(const HdpProblem problem, make_problem(costs, tokens, [&](std::uint32_t row) {
                        return to_string(samples[row].id);
                      }));
  PlanDraft draft = tasks.draft();
  state_bound(pipeline_bound(pipeline, costs, problem), draft);
  return make_timed_plan(topology, name, std::move(samples), std::move(draft), model);
}

}  // namespace

Result<model::StepPlan> plan_dp_balance(const CostModel& model, const model::Topology& topology,
                                        const PaperBalanceOptions& options,
                                        std::vector<model::PlanSample> samples) {
  return plan_paper(Rule::kDp, "dp_balance", model, topology, options, std::move(samples));
}

Result<model::StepPlan> plan_pp_balance(const CostModel& model, const model::Topology& topology,
                                        const PaperBalanceOptions& options,
                                        std::vector<model::PlanSample> samples) {
  return plan_paper(Rule::kPp, "pp_balance", model, topology, options, std::move(samples));
}

}  // namespace batchloom::planning
