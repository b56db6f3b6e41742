// SPDX-License-Identifier: Apache-2.0
// `batchloom run`: a pipeline in this process, until its end or a signal.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/control/pipeline.h"
#include "cli/commands.h"
#include "cli/indexing.h"
#include "cli/metrics_server.h"
#include "cli/pipeline_inputs.h"
#include "cli/progress_line.h"
#include "cli/run_metrics.h"
#include "cli/stop_signals.h"

namespace batchloom::cli {
namespace {

/// As path_beside(), and it still begins as URLs of folders do.
std::string url_beside(const std::string& file, const std::string& url) {
  std::string beside = control::path_beside(file, url);
  if (beside == url || beside.starts_with('/') || beside.starts_with('.')) return beside;
  return "./" + beside;
}

/// What the command line says stands in for what the file says.
Result<control::PipelineConfig> config_of(const RunPipeline& args) {
  BL_ASSIGN_OR_RETURN(const control::PipelineFile file,
                      control::read_pipeline(args.pipeline, disk_inputs()));
  control::PipelineConfig config = file.config;
  if (args.steps) config.run.steps = args.steps;
  if (args.lead) config.store.lead_steps = *args.lead;
  config.store.url = args.store ? *args.store : url_beside(args.pipeline, config.store.url);
  BL_RETURN_IF_ERROR(take_split(args.split, config));
  return config;
}

control::IndexingOptions indexing_options(const RunPipeline& args, std::uint32_t workers) {
  control::IndexingOptions options{.workers = workers, .folder = args.index_folder};
  options.python.max_time = args.sample_timeout;
  options.python.max_time_option = "--sample-timeout";
  options.on_shard = log_indexed;
  return options;
}

std::string_view end_text(control::RunEnd end) {
  switch (end) {
    case control::RunEnd::kStopped: return "stopped";
    case control::RunEnd::kAllSteps: return "all steps";
    case control::RunEnd::kSourcesStop: return "sources stop";
  }
  return "";
}

Fields describe_run(const control::PipelineProgress& progress, control::RunEnd end,
                    double seconds) {
  const double per_second = seconds > 0 ? 1 / seconds : 0;
  Fields fields;
  fields.add("end", end_text(end))
      .add("next_step", progress.next_step.value)
      .add("steps", progress.steps)
      .add("samples", progress.samples)
      .add("tokens", progress.tokens)
      .add("bytes", progress.bytes)
      .add("struck_records", progress.struck)
      .add_decimal("imbalance_before", progress.imbalance_before, 3)
      .add_decimal("imbalance_after", progress.imbalance_after, 3)
      .add_decimal("seconds", seconds, 3)
      .add_decimal("tokens_per_s", static_cast<double>(progress.tokens) * per_second, 0);
  return fields;
}

void warn_of_bad_records(const control::PipelineConfig& config,
                         const std::vector<std::uint64_t>& by_source) {
  for (std::size_t i = 0; i < by_source.size(); ++i) {
    if (by_source[i] == 0) continue;
    log_warning(fmt::format("source '{}': {} bad records are left out (batchloom index names one)",
                            config.sources[i].name, by_source[i]));
  }
}

RunLook look_at(const control::Pipeline& pipeline, store::OpenStore& store, Duration since) {
  return {.progress = pipeline.progress(),
          .seconds = std::chrono::duration<double>(since).count(),
          .counters = store.counters().snapshot()};
}

/// Null where nobody asked for it.
Result<std::unique_ptr<MetricsServer>> serve_metrics(const std::optional<HostPort>& place) {
  if (!place) return std::unique_ptr<MetricsServer>();
  auto server = MetricsServer::start(*place, build_metrics);
  if (!server.is_ok()) return server.status().with_context("--metrics");
  log_info(fmt::format("metrics at {}", (*server)->url()));
  return server;
}

}  // namespace

Status run(const RunPipeline& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const control::PipelineConfig config, config_of(args));
  store::StoreLocation location{.url = config.store.url, .folder = {}, .fsync = args.fsync};
  BL_ASSIGN_OR_RETURN(location.folder, store::parse_store_url(config.store.url));
  const StopSignals signals(runtime);
  // Before anything is read or written: a port that is taken is not to cost an hour of indexing.
  BL_ASSIGN_OR_RETURN(const auto metrics, serve_metrics(args.metrics));
  const CallOptions until_signal{.deadline = kNever, .stop = signals.token()};
  const control::SlowLimits limits{.wait_max = args.sample_timeout};
  const std::uint32_t workers = config.limits.workers.value_or(default_workers());
  auto sources =
      open_sources(config, runtime, indexing_options(args, workers), until_signal, limits);
  if (sources.is(ErrorKind::kCancelled) && signals.came()) {
    log_info("stopped before all was indexed; the next run goes on with the indexing");
    return Status::ok();
  }
  BL_ASSIGN_OR_RETURN(const SourcesOnDisk opened, std::move(sources));

  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::create(location, runtime));
  const CallOptions call = short_call(runtime);
  const auto made = store::init_stream(store->deps(), "batchloom " BATCHLOOM_VERSION, call);
  if (!made.is_ok()) return made.status().with_context(location.url);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  control::PipelineOptions options;
  options.workers = workers;
  options.change_from = args.change_from;
  options.reclaim_every = args.reclaim_every;
  options.sample_max = args.sample_timeout;
  Result<std::unique_ptr<control::Pipeline>> begun(nullptr);
  const auto begin_pipeline = [&] {
    begun = control::Pipeline::open(config, *opened.sources, *stream, options, call);
  };
  BL_RETURN_IF_ERROR(
      watch_files({runtime, config, *opened.calls, limits}, begin_pipeline, until_signal));
  BL_ASSIGN_OR_RETURN(const auto pipeline, std::move(begun));
  log_info(fmt::format("{}: term {}, goes on at step {}", location.url,
                       pipeline->session().term().value, pipeline->progress().next_step.value));
  warn_of_bad_records(config, opened.sources->bad_records());
  const Time begin = runtime.now();
  Result<control::RunEnd> end = control::RunEnd::kStopped;
  {
    const ProgressLine line(runtime, config, *pipeline);
    const ShownMetrics shown(metrics.get(), [&] {
      return run_metrics(config, look_at(*pipeline, *store, runtime.now() - begin));
    });
    end = pipeline->run(signals.token());
  }
  if (!end.is_ok()) {
    end_within(kEndsWithinS);
    return end.status();
  }
  const double seconds = std::chrono::duration<double>(runtime.now() - begin).count();
  print_result(describe_run(pipeline->progress(), *end, seconds), args.json);
  return Status::ok();
}

}  // namespace batchloom::cli
