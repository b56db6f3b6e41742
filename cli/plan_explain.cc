// SPDX-License-Identifier: Apache-2.0
// `batchloom plan explain`: how good a plan is, made now or long ago.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model_toml.h"
#include "batchloom/planning/plan_report.h"
#include "batchloom/planning/plan_samples.h"
#include "batchloom/planning/strategies.h"
#include "batchloom/simulator/cluster.h"
#include "batchloom/simulator/rank_spans.h"
#include "batchloom/store/batch_reader.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"
#include "cli/lengths_input.h"

namespace batchloom::cli {
namespace {

/// A plan, what to time it by, and where its samples came from.
struct ExplainedPlan {
  model::StepPlan plan;
  planning::CostModel costs;
  store::BatchOrigin origin;  ///< Of a stored one.
};

/// The step's lengths: all of files, or what is drawn.
Result<std::vector<std::uint32_t>> step_lengths(const PlanExplain& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const LengthsInput input, LengthsInput::open(args.lengths, runtime));
  if (!input.is_file() || args.lengths.tokens) {
    BL_ASSIGN_OR_RETURN(simulator::LengthsByStep steps,
                        input.draw({.context_tokens = args.context_tokens,
                                    .step_tokens = args.lengths.tokens,
                                    .seed = args.lengths.seed,
                                    .steps = 1}));
    return std::move(steps.front());
  }
  const std::uint32_t context = args.context_tokens.value_or(UINT32_MAX);
  std::vector<std::uint32_t> lengths = input.lengths();
  std::erase_if(lengths, [&](std::uint32_t length) { return length > context; });
  if (!lengths.empty()) return lengths;
  return Status::invalid(fmt::format("{}: no sample of at most {} tokens", input.name(), context));
}

Result<ExplainedPlan> make_plan(const PlanExplain& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const simulator::Cluster cluster,
                      simulator::read_cluster(args.lengths.cluster));
  BL_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> lengths, step_lengths(args, runtime));
  const std::uint32_t longest = std::ranges::max(lengths);
  ExplainedPlan made{.plan = {}, .costs = cluster.costs, .origin = {}};
  BL_ASSIGN_OR_RETURN(made.plan,
                      planning::plan_with(args.strategy,
                                          {.costs = cluster.costs,
                                           .topology = cluster.topology,
                                           .capacity_tokens = cluster.capacity_tokens,
                                           .min_share_tokens = cluster.min_share_tokens,
                                           .context_tokens = args.context_tokens.value_or(longest),
                                           .offload = cluster.offload},
                                          planning::samples_of(lengths)));
  return made;
}

/// What a stored plan is timed by where no cluster is given: the costs that made it, or the
/// built-in cluster's where it names none.
Result<planning::CostModel> costs_of(const store::BatchOrigin& origin) {
  if (!origin.cost_table.empty()) {
    return planning::parse_cost_model(as_text(origin.cost_table),
                                      fmt::format("the stream's cost model {}", origin.cost_model));
  }
  if (!origin.cost_model.empty()) return planning::builtin_cost_model(origin.cost_model);
  BL_ASSIGN_OR_RETURN(const simulator::Cluster cluster, simulator::read_cluster(""));
  return cluster.costs;
}

/// A stored plan over the links of a cluster, and with its costs.
Status put_onto(const std::string& path, ExplainedPlan& explained) {
  BL_ASSIGN_OR_RETURN(const simulator::Cluster cluster, simulator::read_cluster(path));
  model::Topology& topology = explained.plan.topology;
  if (cluster.topology.world_size() != topology.world_size()) {
    return Status::invalid(fmt::format("{}: a cluster of {} ranks, and the plan is for {} ({})",
                                       path, cluster.topology.world_size(), topology.world_size(),
                                       model::to_string(topology)));
  }
  BL_ASSIGN_OR_RETURN(topology,
                      model::Topology::create(topology.axes(), cluster.topology.levels()));
  explained.costs = cluster.costs;
  return Status::ok();
}

Result<ExplainedPlan> stored_plan(const PlanExplain& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto open, store::OpenStore::open(args.store, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, open->open_stream(call));
  store::ManifestReader manifest(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, manifest.latest(call));
  store::SegmentReader segments(*stream);
  BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head->head, *args.step, call));
  store::BatchReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const auto index, reader.read_index(entry, call));
  const auto place = static_cast<std::size_t>(*args.step - entry.first_step);
  ExplainedPlan stored{.plan = index->steps[place].plan, .costs = {}, .origin = index->origin};
  if (!args.lengths.cluster.empty()) {
    BL_RETURN_IF_ERROR(put_onto(args.lengths.cluster, stored));
    return stored;
  }
  BL_ASSIGN_OR_RETURN(stored.costs, costs_of(stored.origin));
  return stored;
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

/// What each source gave of the step.
void add_sources(const ExplainedPlan& explained, Fields& fields) {
  struct Share {
    std::uint64_t samples = 0;
    std::uint64_t tokens = 0;
  };
  std::vector<Share> shares(explained.origin.sources.size());
  std::uint64_t all = 0;
  for (const model::PlanSample& sample : explained.plan.samples) {
    Share& share = shares[sample.id.source.value];
    ++share.samples;
    share.tokens += sample.tokens;
    all += sample.tokens;
  }
  std::vector<Fields> rows;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    rows.emplace_back()
        .add("source", explained.origin.sources[i].name)
        .add("samples", shares[i].samples)
        .add("tokens", shares[i].tokens)
        .add_decimal("share_of_tokens", ratio(shares[i].tokens, all), 4);
  }
  fields.add("sources", std::span<const Fields>(rows));
}

void add_timeline(const model::StepPlan& plan, const planning::StepTime& time, Fields& fields) {
  std::vector<Fields> rows;
  for (const simulator::RankSpan& span : simulator::rank_spans(plan, time)) {
    rows.emplace_back()
        .add("rank", std::uint64_t{span.rank})
        .add("stage", std::uint64_t{span.stage})
        .add("phase", span.phase == model::Phase::kForward ? "forward" : "backward")
        .add("ring", std::uint64_t{span.ring})
        .add_decimal("begin_ms", ms(span.begin_ns), 3)
        .add_decimal("end_ms", ms(span.end_ns), 3)
        .add_decimal("compute_ms", ms(span.compute_ns), 3);
  }
  fields.add("timeline", std::span<const Fields>(rows));
}

}  // namespace

Status run(const PlanExplain& args, Runtime& runtime) {
  const Result<ExplainedPlan> explained =
      args.step ? stored_plan(args, runtime) : make_plan(args, runtime);
  if (!explained.is_ok()) return explained.status();
  const model::StepPlan& plan = explained->plan;
  BL_ASSIGN_OR_RETURN(const planning::StepTime time, planning::step_time(plan, explained->costs));
  const planning::PlanReport report = planning::report_of(plan, explained->costs, time);
  Fields fields;
  fields.add("strategy", plan.strategy)
      .add("topology", model::to_string(plan.topology))
      .add("links",
           plan.topology.levels().empty() ? "none: rings take no time" : "as the cluster has them")
      .add("costs", explained->costs.name)
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
  if (args.step) add_sources(*explained, fields);
  if (args.timeline) add_timeline(plan, time, fields);
  print_result(fields, args.json);
  return Status::ok();
}

}  // namespace batchloom::cli
