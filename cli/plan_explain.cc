// SPDX-License-Identifier: Apache-2.0
// `batchloom plan explain`: how good a plan is, made now or long ago.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/planning/plan_report.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategies.h"
#include "batchloom/simulator/cluster.h"
#include "batchloom/store/batch_reader.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"
#include "cli/lengths_input.h"

namespace batchloom::cli {
namespace {

constexpr std::uint32_t kNamedContext = std::uint32_t{2} << 20;
constexpr std::uint64_t kNamedTokens = std::uint64_t{32} << 20;

/// The step's lengths: all of a file, or what is drawn.
Result<std::vector<std::uint32_t>> step_lengths(const PlanExplain& args) {
  BL_ASSIGN_OR_RETURN(LengthsInput input, open_lengths(args.lengths));
  const std::uint32_t context = args.context_tokens > 0 ? args.context_tokens
                                : input.is_file         ? UINT32_MAX
                                                        : kNamedContext;
  if (input.is_file && !args.lengths.tokens) {
    std::erase_if(input.lengths, [&](std::uint32_t length) { return length > context; });
    if (!input.lengths.empty()) return std::move(input.lengths);
    return Status::invalid(fmt::format("{}: no sample of at most {} tokens", input.name, context));
  }
  BL_ASSIGN_OR_RETURN(simulator::LengthsByStep steps,
                      input.draw({.context_tokens = context,
                                  .step_tokens = args.lengths.tokens.value_or(kNamedTokens),
                                  .steps = 1,
                                  .seed = args.lengths.seed}));
  return std::move(steps.front());
}

Result<model::StepPlan> make_plan(const PlanExplain& args, const simulator::Cluster& cluster) {
  BL_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> lengths, step_lengths(args));
  const std::uint32_t longest = std::ranges::max(lengths);
  return planning::plan_with(
      args.strategy,
      {.costs = cluster.costs,
       .topology = cluster.topology,
       .capacity_tokens = cluster.capacity_tokens,
       .min_share_tokens = cluster.min_share_tokens,
       .context_tokens = args.context_tokens > 0 ? args.context_tokens : longest,
       .offload = cluster.offload},
      planning::samples_of(lengths));
}

Result<model::StepPlan> stored_plan(const PlanExplain& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto open, store::OpenStore::open(args.store, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, open->open_stream(call));
  store::ManifestReader manifest(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, manifest.latest(call));
  store::SegmentReader segments(*stream);
  BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head->head, *args.step, call));
  store::BatchReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const auto index, reader.read_index(entry, call));
  return index->steps[static_cast<std::size_t>(*args.step - entry.first_step)].plan;
}

double ratio(std::uint64_t of, std::uint64_t to) {
  return static_cast<double>(of) / static_cast<double>(to);
}

constexpr double kMsPerNs = 1e-6;
double ms(std::uint64_t ns) {
  return static_cast<double>(ns) * kMsPerNs;
}

void add_bound(const planning::PlanReport& report, Fields& fields) {
  fields.add("bound_term", planning::to_string(report.bound_term));
  if (report.bound_term != model::BoundTerm::kNone) {
    fields.add_decimal("lower_bound_ms", ms(report.lower_bound_ns), 3);
  }
  fields.add_decimal("makespan_ms", ms(report.makespan_ns), 3)
      .add_decimal("step_ms_simulated", ms(report.step_ns), 3);
  if (report.lower_bound_ns == 0) return;
  fields.add_decimal("gap_of_makespan", ratio(report.makespan_ns, report.lower_bound_ns), 4)
      .add_decimal("gap_of_step", ratio(report.step_ns, report.lower_bound_ns), 4);
}

void add_times(const planning::PlanReport& report, std::uint64_t ranks, Fields& fields) {
  fields.add_decimal("imbalance_before", report.before.imbalance(), 4)
      .add_decimal("imbalance_after", report.after.imbalance(), 4)
      .add_decimal("compute_ms_mean", ms(report.busy.compute_ns) / static_cast<double>(ranks), 3)
      .add_decimal("ring_wait_ms_mean", ms(report.busy.ring_ns) / static_cast<double>(ranks), 3)
      .add_decimal("copy_wait_ms_mean", ms(report.busy.copy_ns) / static_cast<double>(ranks), 3)
      .add_decimal("idle_ms_mean", ms(report.idle_ns) / static_cast<double>(ranks), 3)
      .add_decimal("idle_ms_most", ms(report.idle_most_ns), 3);
}

void add_bytes(const planning::PlanReport& report, const std::vector<model::Level>& levels,
               Fields& fields) {
  std::vector<Fields> rows;
  for (std::size_t i = 0; i < report.bytes_by_level.size(); ++i) {
    rows.emplace_back()
        .add("level", i < levels.size() ? std::string_view(levels[i].name) : "all")
        .add("bytes", report.bytes_by_level[i]);
  }
  fields.add("ring_bytes", std::span<const Fields>(rows));
}

}  // namespace

Status run(const PlanExplain& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const simulator::Cluster cluster,
                      simulator::read_cluster(args.lengths.cluster));
  const Result<model::StepPlan> made =
      args.step ? stored_plan(args, runtime) : make_plan(args, cluster);
  if (!made.is_ok()) return made.status();
  const model::StepPlan& plan = *made;
  BL_ASSIGN_OR_RETURN(const planning::PlanReport report, planning::report_of(plan, cluster.costs));
  Fields fields;
  fields.add("strategy", plan.strategy)
      .add("topology", model::to_string(plan.topology))
      .add("costs", cluster.costs.name)
      .add("samples", std::uint64_t{plan.samples.size()})
      .add("tokens", report.sample_tokens)
      .add("longest_sample", std::uint64_t{report.longest_sample_tokens})
      .add("tasks", std::uint64_t{plan.tasks.size()})
      .add("largest_ring", std::uint64_t{report.largest_ring})
      .add("micro_batches_most", std::uint64_t{report.micro_batches_most})
      .add("offloading_tasks", std::uint64_t{report.offloading_tasks})
      .add("padding_tokens", report.padding_tokens);
  add_bound(report, fields);
  add_times(report, plan.ranks.size(), fields);
  add_bytes(report, plan.topology.levels(), fields);
  print_result(fields, args.json);
  return Status::ok();
}

}  // namespace batchloom::cli
