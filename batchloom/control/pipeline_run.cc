// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/control/loader_threads.h"
#include "batchloom/control/progress_book.h"
#include "batchloom/planning/graph_mixture.h"
#include "batchloom/planning/planner.h"

namespace batchloom::control {
namespace {

/// Steps on their way to be loaded: beyond some tens more of them gain nothing, and each holds the
/// state that came before it.
constexpr std::size_t kStepsAhead = 64;

using Constructors = std::vector<std::unique_ptr<construction::StreamConstructor>>;

Constructors make_constructors(const PipelineRoles& roles, const PipelineRunOptions& options) {
  const auto objects = std::make_shared<const construction::ObjectOptions>(options.objects);
  Constructors constructors;
  for (std::uint32_t i = 0; i < std::max(options.constructors, 1U); ++i) {
    constructors.push_back(std::make_unique<construction::StreamConstructor>(
        fmt::format("constructor-{}", i), roles.stream, roles.session.session(), objects));
  }
  return constructors;
}

std::vector<construction::Constructor*> pointers(const Constructors& constructors) {
  std::vector<construction::Constructor*> result;
  for (const auto& constructor : constructors) result.push_back(constructor.get());
  return result;
}

StepLoaderOptions loader_options(const PipelineRoles& roles, const PipelineRunOptions& options) {
  StepLoaderOptions loaders = options.loaders;
  for (const planning::SourceRecords& source : roles.metadata.sources()) {
    loaders.slow.source_names.push_back(source.name);
  }
  return loaders;
}

/// Null where there are always as many.
std::unique_ptr<LoaderThreads> make_loader_threads(const PipelineRoles& roles,
                                                   const PipelineRunOptions& options) {
  if (!options.scaling || !options.graph.mix) return nullptr;
  return std::make_unique<LoaderThreads>(
      roles.stream.runtime(), roles.fetcher, *options.graph.mix, roles.metadata,
      LoaderThreadsOptions{.threads = std::max(options.loaders.workers, 1U),
                           .scaling = *options.scaling,
                           .thread_times = options.thread_times});
}

construction::ConstructorPoolOptions pool_options(const PipelineRoles& roles,
                                                  const PipelineRunOptions& options) {
  construction::ConstructorPoolOptions pool = options.pool;
  pool.first = roles.session.next_seq();
  return pool;
}

/// Of one source: those struck out, and those that indexes know of.
std::uint64_t bad_records_of(model::SourceId source, const StruckRecords& records,
                             const PipelineRunOptions& options) {
  const std::vector<std::uint64_t>& indexed = options.indexed_bad_records;
  return records.count(source) + (source.value < indexed.size() ? indexed[source.value] : 0);
}

ProgressBegin progress_begin(const PipelineRoles& roles, const PipelineRunOptions& options,
                             const StruckRecords& records) {
  ProgressBegin begin{.next_step = options.lead.next_step,
                      .struck = records.size(),
                      .now = roles.stream.runtime().now()};
  for (std::size_t i = 0; i < records.sources().size(); ++i) {
    const model::SourceId source(static_cast<std::uint32_t>(i));
    begin.bad_records.push_back(bad_records_of(source, records, options));
  }
  // Planning says what is wrong with it.
  auto mixture = options.graph.mix ? planning::mixture_config(*options.graph.mix, records.sources())
                                   : Status::invalid("no mix");
  if (mixture.is_ok()) begin.sources = std::move(mixture->sources);
  return begin;
}

}  // namespace

class PipelineRun::Impl {
 public:
  Impl(const PipelineRoles& roles, PipelineRunOptions options, PipelineState state)
      : roles_(roles),
        options_(std::move(options)),
        membership_(state.membership),
        records_(roles.metadata, state.struck),
        state_(std::move(state.planner)),
        seq_(roles.session.next_seq()),
        gate_(roles.stream, options_.lead),
        retain_(roles.stream, {options_.retain_max_bytes, options_.lead.url}),
        book_(progress_begin(roles, options_, records_)),
        loader_threads_(make_loader_threads(roles, options_)),
        loader_(roles.stream.runtime(),
                loader_threads_ ? loader_threads_->fetcher() : roles.fetcher,
                loader_options(roles, options_)),
        constructors_(make_constructors(roles, options_)),
        constructor_pointers_(pointers(constructors_)),
        pool_(
            roles.stream.runtime(), constructor_pointers_,
            [this](std::span<const store::PendingBatch> batches, const CallOptions& call) {
              return commit(batches, call);
            },
            pool_options(roles, options_)) {}

  Result<RunEnd> run(const std::stop_token& stop);
  PipelineProgress progress() const;

 private:
  Result<RunEnd> work(const CallOptions& call);
  /// Whether something was planned or sent to be loaded.
  Result<bool> plan_ahead(const CallOptions& call);
  Status wait_for_room(const CallOptions& call);
  /// What `work` returns; the time that it takes counts as waiting for `what`.
  template <class F>
  auto waiting_for(WaitsFor what, F work) {
    Runtime& runtime = roles_.stream.runtime();
    book_.wait_for(what, runtime.now());
    auto result = work();
    book_.wait_for(WaitsFor::kNothing, runtime.now());
    return result;
  }
  Status flush(const CallOptions& call) {
    return waiting_for(WaitsFor::kConstructors, [&] { return pool_.flush(call); });
  }
  Status plan();
  Status hand_on(const CallOptions& call);
  Status strike(const LoadedStep& loaded);
  void forget_planned();
  void give_back(std::uint64_t steps) {
    gate_.give_back(steps);
    retain_.give_back(steps);
  }
  Result<bool> try_take(const CallOptions& call);
  Status commit(std::span<const store::PendingBatch> batches, const CallOptions& call);
  bool all_planned() const {
    return ended_ || (options_.steps && state_.mixture.step.value >= *options_.steps);
  }

  const PipelineRoles roles_;
  const PipelineRunOptions options_;
  const Hash128 membership_;
  StruckRecords records_;
  planning::PlannerState state_;  // After the last step planned.
  store::Seq seq_;                // Of the next batch.
  LeadGate gate_;
  RetainGate retain_;
  ProgressBook book_;
  std::optional<planning::PlannedStep> planned_;   // Waits for room with the loaders.
  std::deque<planning::PlannerState> before_;      // By step with the loaders, then of planned_.
  bool ended_ = false;                             // The sources stopped.
  std::unique_ptr<LoaderThreads> loader_threads_;  // Null without scaling.
  StepLoader loader_;
  Constructors constructors_;
  std::vector<construction::Constructor*> constructor_pointers_;
  construction::ConstructorPool pool_;  // Last: it uses what stands above.
};

Result<RunEnd> PipelineRun::Impl::run(const std::stop_token& stop) {
  Runtime& runtime = roles_.stream.runtime();
  Result<RunEnd> end = work({.deadline = kNever, .stop = stop});
  if (end.is(ErrorKind::kCancelled) && stop.stop_requested()) end = RunEnd::kStopped;
  const Time until =
      end.is_ok() && *end != RunEnd::kStopped ? kNever : runtime.now() + options_.stop_within;
  const construction::PoolEnd committed = pool_.stop({.deadline = until, .stop = {}});
  BL_RETURN_IF_ERROR(end.status());
  BL_RETURN_IF_ERROR(committed.reason);
  return end;
}

Result<RunEnd> PipelineRun::Impl::work(const CallOptions& call) {
  for (;;) {
    BL_RETURN_IF_ERROR(roles_.stream.runtime().check(call));
    BL_ASSIGN_OR_RETURN(const bool more, plan_ahead(call));
    if (more) continue;
    if (!loader_.empty()) {
      BL_RETURN_IF_ERROR(hand_on(call));
    } else if (all_planned()) {
      BL_RETURN_IF_ERROR(flush(call));
      return ended_ ? RunEnd::kSourcesStop : RunEnd::kAllSteps;
    } else {
      BL_RETURN_IF_ERROR(wait_for_room(call));
    }
  }
}

Result<bool> PipelineRun::Impl::plan_ahead(const CallOptions& call) {
  if (!planned_ && !all_planned() && loader_.steps() < kStepsAhead) {
    BL_ASSIGN_OR_RETURN(const bool room, try_take(call));
    book_.lead(gate_.lead());
    if (room) BL_RETURN_IF_ERROR(plan());
  }
  if (!planned_ || !loader_.has_room(*planned_)) return false;
  loader_.submit(*std::exchange(planned_, std::nullopt));
  return true;
}

/// Whether one more step may be made now.
Result<bool> PipelineRun::Impl::try_take(const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const bool room, retain_.try_take(call));
  if (!room) return false;
  const Result<bool> lead = gate_.try_take(1, call);
  if (!lead.is_ok() || !*lead) retain_.give_back(1);
  return lead;
}

/// Nothing is on its way but with constructors, and lead or retain allow no more.
Status PipelineRun::Impl::wait_for_room(const CallOptions& call) {
  BL_RETURN_IF_ERROR(flush(call));  // From here on nothing can fail but the waiting.
  BL_RETURN_IF_ERROR(waiting_for(WaitsFor::kRoom, [&] { return retain_.wait(call); }));
  BL_RETURN_IF_ERROR(waiting_for(WaitsFor::kConsumer, [&] { return gate_.wait(1, call); }));
  return plan();
}

/// Precondition: a step was taken from the gates.
Status PipelineRun::Impl::plan() {
  auto planned = planning::plan_step(options_.graph, state_, records_, options_.topology);
  if (!planned.is_ok()) {
    return planned.status().with_context(
        fmt::format("planning step {}", state_.mixture.step.value));
  }
  if (!*planned) {
    ended_ = true;
    give_back(1);
    return Status::ok();
  }
  before_.push_back(std::exchange(state_, (*planned)->next));
  planned_ = **std::move(planned);
  return Status::ok();
}

Status PipelineRun::Impl::hand_on(const CallOptions& call) {
  Runtime& runtime = roles_.stream.runtime();
  const bool is_full = planned_ || loader_.steps() >= kStepsAhead;
  const bool behind = is_full || loaders_are_behind(loader_.steps(), options_.lead.lead);
  const Time asked = runtime.now();
  BL_ASSIGN_OR_RETURN(LoadedStep loaded,
                      waiting_for(WaitsFor::kSources, [&] { return loader_.next(call); }));
  const Duration waited = behind ? runtime.now() - asked : Duration(0);
  if (!loaded.bad.empty()) return strike(loaded);
  before_.pop_front();
  if (loader_threads_) loader_threads_->handed_on(loaded.planned, waited, loader_);
  book_.built(loaded.planned, *options_.graph.find(planning::Modality::kText)->cost);
  construction::ConstructionJob job;
  job.seq = seq_;
  ++seq_;
  job.state_after = encode_pipeline_state(
      {.membership = membership_, .struck = records_.struck(), .planner = loaded.planned.next});
  job.steps.push_back({std::move(loaded.planned), std::move(loaded.blocks)});
  return waiting_for(WaitsFor::kConstructors, [&] { return pool_.submit(std::move(job), call); });
}

Status PipelineRun::Impl::strike(const LoadedStep& loaded) {
  for (const BadSample& bad : loaded.bad) {
    const RecordName record{bad.sample.source, bad.sample.index};
    if (!records_.strike(record)) continue;
    log_warning(fmt::format("struck out, and replaced by the next of its source: {}", bad.message));
    const std::uint64_t of_source = bad_records_of(record.source, records_, options_);
    book_.struck(records_.size(), record.source, of_source);
    if (of_source > options_.bad_records || records_.size() > kStruckMax) {
      return Status::exhausted(fmt::format(
          "step {}: source '{}' has {} bad records, and {} are allowed; the last: {}",
          loaded.planned.step.value, records_.sources()[record.source.value].name, of_source,
          std::min<std::uint64_t>(options_.bad_records, kStruckMax), bad.message));
    }
  }
  forget_planned();
  return Status::ok();
}

void PipelineRun::Impl::forget_planned() {
  state_ = before_.front();
  give_back(before_.size());
  before_.clear();
  planned_.reset();
  loader_.clear();
  ended_ = false;
}

Status PipelineRun::Impl::commit(std::span<const store::PendingBatch> batches,
                                 const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const store::CommitReceipt receipt, roles_.session.commit(batches, call));
  std::uint64_t bytes = 0;
  for (const store::PendingBatch& batch : batches) {
    bytes += batch.size_bytes;
    retain_.note_commit(batch.size_bytes, receipt.next_step);
  }
  gate_.note_commit(batches.size(), receipt.next_step);
  book_.committed(receipt.next_step, batches.size(), bytes);
  return Status::ok();
}

PipelineProgress PipelineRun::Impl::progress() const {
  // First: so what was waited for single sources is never more than for all.
  const std::vector<SourceLoad> loads = loader_.loads();
  PipelineProgress progress = book_.progress(roles_.stream.runtime().now());
  progress.memory_bytes = loader_.bytes() + pool_.pending_bytes();
  progress.loader_threads = loader_.workers();
  progress.held_up_by = loader_.held_up_by();
  if (progress.sources.size() < loads.size()) progress.sources.resize(loads.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    SourceProgress& source = progress.sources[i];
    source.bytes = loads[i].bytes;
    source.busy = loads[i].busy;
    source.waited = loads[i].waited;
  }
  return progress;
}

PipelineRun::PipelineRun(const PipelineRoles& roles, PipelineRunOptions options,
                         PipelineState state)
    : impl_(std::make_unique<Impl>(roles, std::move(options), std::move(state))) {}
PipelineRun::~PipelineRun() = default;

Result<RunEnd> PipelineRun::run(const std::stop_token& stop) {
  return impl_->run(stop);
}

PipelineProgress PipelineRun::progress() const {
  return impl_->progress();
}

}  // namespace batchloom::control
