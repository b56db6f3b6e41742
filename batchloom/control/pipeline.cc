// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/thread_times.h"
#include "batchloom/control/loader_outlook.h"
#include "batchloom/control/periodic_reclaimer.h"
#include "batchloom/control/pipeline_graph.h"
#include "batchloom/control/settings_change.h"
#include "batchloom/planning/builtin_costs.h"
#include "batchloom/planning/cost_model_toml.h"
#include "batchloom/planning/planner.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::control {
namespace {

/// Others travel with the batches: whoever lays them out anew does not have the file.
bool is_builtin(const planning::CostModel& costs) {
  const auto known = planning::builtin_cost_model(costs.name);
  return known.is_ok() && *known == costs;
}

PipelineRunOptions run_options(const PipelineConfig& config, const PreparedSources& sources,
                               const PipelineOptions& options, store::Step next_step) {
  PipelineRunOptions run;
  run.graph = graph_of(config);
  run.topology = config.topology.axes;
  run.objects.vocab = config.tokens.vocab;
  run.objects.origin.sources = sources.origins();
  run.objects.origin.planner = "batchloom";
  run.objects.origin.capacity_tokens = config.topology.capacity_tokens;
  run.objects.origin.max_sample_tokens = config.step.max_sample_tokens;
  run.objects.origin.min_share_tokens = config.balance.min_share_tokens;
  run.objects.origin.offload = config.balance.offload;
  run.objects.origin.cost_model = config.balance.costs.name;
  if (!is_builtin(config.balance.costs)) {
    run.objects.origin.cost_table = to_bytes(planning::to_toml(config.balance.costs));
  }
  run.steps = config.run.steps;
  run.lead = {.lead = config.store.lead_steps, .url = config.store.url, .next_step = next_step};
  run.retain_max_bytes = config.store.retain_max_bytes;
  run.loaders.workers = config.limits.workers.value_or(options.workers);
  run.loaders.slow.sample_max = options.sample_max;
  run.loaders.widths = widths_of(config);
  const PartitionLimits limits = loader_limits(config, options.workers);
  run.loaders.bytes_max = limits.memory_bytes;
  if (!config.limits.workers) {
    run.scaling.emplace().limits = limits;
    run.thread_times = thread_times;
  }
  run.constructors = options.workers;
  run.pool.bytes_max = limits.memory_bytes;  // As much again as loaders may hold.
  run.bad_records = config.limits.bad_records;
  run.indexed_bad_records = sources.bad_records();
  return run;
}

/// What the session's last batch was committed with, or a new pipeline's; of other settings, as
/// theirs go on from it.
Result<PipelineState> state_of(const store::ProducerSession& session,
                               const StreamSettings& settings, const planning::GraphSpec& graph,
                               PreparedSources& sources) {
  PipelineState committed;
  if (!session.state().empty()) {
    BL_ASSIGN_OR_RETURN(committed, decode_pipeline_state(session.state()));
    if (!settings.before) return committed;
  }
  PipelineState fresh;
  fresh.membership = sources.membership().digest();
  BL_ASSIGN_OR_RETURN(fresh.planner, planning::first_state(graph, sources.set()));
  if (!settings.before) return fresh;
  return state_after_change({*settings.before, committed}, {sources.membership(), fresh});
}

/// A stream without any step serves nobody: a mistake in the sources, and no end of them.
Status no_step(const PreparedSources& sources, const PipelineConfig& config,
               std::uint64_t struck = 0) {
  const auto totals = [&](std::size_t i) {
    return sources.set().source(model::SourceId(static_cast<std::uint32_t>(i))).totals();
  };
  // One without tokens explains it best.
  std::size_t named = 0;
  while (named < config.sources.size() && totals(named).tokens > 0) ++named;
  if (named == config.sources.size()) named = 0;
  const sources::SidecarTotals found = totals(named);
  return Status::invalid(fmt::format(
      "the sources stop before the first step: source '{}' has {} records, of which {} are empty "
      "and {} bad, and {} tokens before splits and cuts{}; `batchloom index` counts what each "
      "source holds, and exhausted = \"drop\" goes on without one that has nothing more",
      config.sources[named].name, found.records, found.empty_records, found.bad_records,
      found.tokens,
      struck == 0 ? ""
                  : fmt::format("; {} records of all sources turned out to be bad when they were "
                                "read, as warnings say",
                                struck)));
}

/// Before anything of a new stream is written down. What later turns out to be bad may still leave
/// it without a step.
Status check_first_step(PreparedSources& sources, const PipelineConfig& config) {
  if (config.run.steps == 0U) return Status::ok();
  const auto has_none = [](const planning::SourceRecords& source) { return source.records == 0; };
  if (std::ranges::all_of(sources.set().sources(), has_none)) return no_step(sources, config);
  const planning::GraphSpec graph = graph_of(config);
  BL_ASSIGN_OR_RETURN(const auto begin, planning::first_state(graph, sources.set()));
  BL_ASSIGN_OR_RETURN(const auto first, planning::draw_step(graph, begin, sources.set()));
  return first ? Status::ok() : no_step(sources, config);
}

/// The stream says by what it goes on, before the first batch that is made by it.
Status record_settings(store::ProducerSession& session, const StreamSettings& settings,
                       const Membership& membership, const CallOptions& call) {
  if (settings.is_recorded) return Status::ok();
  BL_ASSIGN_OR_RETURN(Bytes keys, encode_membership(membership));
  const Hash128 digest = membership.digest();
  return session
      .set_membership({.from_step = settings.next_step,
                       .digest = {.high = digest.high, .low = digest.low},
                       .keys = std::move(keys)},
                      call)
      .status();
}

}  // namespace

class Pipeline::Impl {
 public:
  Impl(const PipelineConfig& config, const store::Stream& stream, PreparedSources& sources,
       PipelineRunOptions options)
      : config_(config), stream_(stream), sources_(sources), options_(std::move(options)) {}

  Status open(const PipelineOptions& options, const CallOptions& call);
  Result<RunEnd> run(const std::stop_token& stop);
  PipelineProgress progress() const { return run_->progress(); }
  const store::ProducerSession& session() const { return *session_; }

 private:
  const PipelineConfig& config_;
  const store::Stream& stream_;
  PreparedSources& sources_;
  const PipelineRunOptions options_;
  std::unique_ptr<store::ProducerSession> session_;
  std::unique_ptr<PipelineRun> run_;
  std::unique_ptr<PeriodicReclaimer> reclaimer_;
  model::Step began_at_;  ///< The stream's next step, once nobody else could commit.
  bool is_done_ = false;
};

Status Pipeline::Impl::open(const PipelineOptions& options, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(session_,
                      store::ProducerSession::open(stream_, std::string(kPipelineProducer), call));
  // Who was fenced may have committed since, and nobody else can from here on.
  BL_ASSIGN_OR_RETURN(const StreamSettings settings,
                      compare_settings(stream_, sources_.membership(), options.change_from, call));
  began_at_ = settings.next_step;
  BL_ASSIGN_OR_RETURN(PipelineState state, state_of(*session_, settings, options_.graph, sources_));
  BL_RETURN_IF_ERROR(record_settings(*session_, settings, sources_.membership(), call));
  store::ManifestReader reader(stream_);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  if (head->head.ended) {
    BL_ASSIGN_OR_RETURN(const auto more,
                        planning::draw_step(options_.graph, state.planner, sources_.set()));
    is_done_ = !more || (options_.steps && state.planner.mixture.step.value >= *options_.steps);
    if (!is_done_) BL_RETURN_IF_ERROR(store::reopen_stream(stream_, call).status());
  }
  BL_RETURN_IF_ERROR(store::set_topology(stream_, options_.topology, call).status());
  const PipelineRoles roles{stream_, *session_, sources_.set(), sources_.fetcher()};
  run_ = std::make_unique<PipelineRun>(roles, options_, std::move(state));
  if (options.reclaim_every) {
    reclaimer_ = std::make_unique<PeriodicReclaimer>(stream_, *options.reclaim_every);
  }
  return Status::ok();
}

Result<RunEnd> Pipeline::Impl::run(const std::stop_token& stop) {
  if (is_done_) return RunEnd::kAllSteps;
  BL_ASSIGN_OR_RETURN(const RunEnd end, run_->run(stop));
  const bool has_steps = began_at_ > model::Step(0) || progress().next_step > model::Step(0);
  if (end == RunEnd::kSourcesStop && !has_steps) {
    return no_step(sources_, config_, progress().struck);
  }
  if (end != RunEnd::kStopped) BL_RETURN_IF_ERROR(session_->end_stream({}));
  return end;
}

Pipeline::Pipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pipeline::~Pipeline() = default;

Result<std::unique_ptr<Pipeline>> Pipeline::open(const PipelineConfig& config,
                                                 PreparedSources& sources,
                                                 const store::Stream& stream,
                                                 const PipelineOptions& options,
                                                 const CallOptions& call) {
  BL_RETURN_IF_ERROR(sources.check_bad_records(call));
  BL_ASSIGN_OR_RETURN(const StreamSettings settings,
                      compare_settings(stream, sources.membership(), options.change_from, call));
  if (settings.next_step == store::Step(0)) {
    BL_RETURN_IF_ERROR(check_first_step(sources, config));
  }
  auto impl = std::make_unique<Impl>(config, stream, sources,
                                     run_options(config, sources, options, settings.next_step));
  BL_RETURN_IF_ERROR(impl->open(options, call));
  return std::unique_ptr<Pipeline>(new Pipeline(std::move(impl)));
}

Result<RunEnd> Pipeline::run(const std::stop_token& stop) {
  return impl_->run(stop);
}

PipelineProgress Pipeline::progress() const {
  return impl_->progress();
}

const store::ProducerSession& Pipeline::session() const {
  return impl_->session();
}

}  // namespace batchloom::control
