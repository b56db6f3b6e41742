// SPDX-License-Identifier: Apache-2.0
// `batchloom explain`: a pipeline as it is understood, and, where its sources are indexed, what
// will come of it. The text is a pipeline file again: what it adds stands in comments.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "batchloom/base/thread_times.h"
#include "batchloom/control/forecast.h"
#include "batchloom/control/loader_outlook.h"
#include "batchloom/control/pipeline_describe.h"
#include "batchloom/control/pipeline_graph.h"
#include "batchloom/control/pipeline_toml.h"
#include "batchloom/control/source_files.h"
#include "batchloom/planning/toml_text.h"
#include "cli/commands.h"
#include "cli/forecast_text.h"
#include "cli/indexing.h"
#include "cli/pipeline_inputs.h"
#include "cli/stop_signals.h"
#include "cli/workers_text.h"

namespace batchloom::cli {
namespace {

/// More takes more than a person waits.
constexpr std::uint64_t kStepsMost = 1000;
constexpr std::size_t kFilesShown = 10;
/// For samples of all sources together.
constexpr std::chrono::seconds kMeasuredMost{1};
constexpr std::string_view kUnknown = "unknown until indexed";

Fields topology_fields(const control::PipelineConfig& config) {
  const model::Topology& axes = config.topology.axes;
  const std::uint64_t ranks = control::ranks_of_a_part(config);
  Fields fields;
  fields.add("ranks", std::uint64_t{axes.world_size()})
      .add("hdp_ranks", std::uint64_t{axes.hdp_size()})
      .add("ranks_of_a_part", ranks)
      .add("longest_part_tokens", ranks * config.topology.capacity_tokens);
  return fields;
}

/// What can be known before the run. Sources and forecast are there where all is indexed and right.
struct Explained {
  SourcesOnDisk opened = {};
  std::optional<control::Forecast> forecast = {};
  std::string no_forecast = std::string(kUnknown);  ///< Why there is none.
  WorkersExplained workers = {.cores = default_workers(), .no_outlook = std::string(kUnknown)};

  /// Null where it is not indexed.
  const sources::RecordSource* records_of(std::size_t source) const {
    if (opened.sources == nullptr) return nullptr;
    return &opened.sources->set().source(model::SourceId(static_cast<std::uint32_t>(source)));
  }
};

std::uint64_t index_bytes(const sources::RecordSource& records) {
  std::uint64_t bytes = 0;
  for (const sources::IndexedShard& shard : records.shards()) bytes += shard.index->file_bytes();
  return bytes;
}

/// Among how many records one of a pass may come: all, or, in the files' order, itself.
std::uint64_t shuffle_window(const control::SourceConfig& source,
                             const sources::RecordSource& records) {
  return source.order == planning::Order::kRandom ? records.records() : 1;
}

/// Of indexed sources. Errors: those with which a run refuses them, too.
Result<control::Forecast> foresee(const Explain& args, const control::PipelineConfig& config,
                                  control::PreparedSources& sources, Runtime& runtime,
                                  const CallOptions& call) {
  BL_RETURN_IF_ERROR(sources.check_bad_records(call));
  const std::uint64_t steps =
      args.steps.value_or(std::min(config.run.steps.value_or(kStepsMost), kStepsMost));
  const planning::GraphSpec graph = control::graph_of(config);
  return control::forecast({graph, sources.set(), config.topology.axes, control::widths_of(config)},
                           steps, runtime, call);
}

/// What samples cost, from the files themselves, and the threads that follow.
Result<control::LoaderOutlook> foresee_workers(const control::PipelineConfig& config,
                                               const Explained& explained, Runtime& runtime,
                                               const CallOptions& call) {
  control::PreparedSources& sources = *explained.opened.sources;
  Result<std::vector<control::SampleCost>> costs(std::vector<control::SampleCost>{});
  const auto measure = [&] {
    costs = control::measure_sources(runtime, sources.set(), sources.fetcher(),
                                     {.max_sample_tokens = config.step.max_sample_tokens,
                                      .at_most = kMeasuredMost,
                                      .thread_times = thread_times},
                                     call);
  };
  BL_RETURN_IF_ERROR(watch_files(
      {.runtime = runtime, .config = config, .calls = *explained.opened.calls}, measure, call));
  BL_RETURN_IF_ERROR(costs.status());
  const std::uint64_t steps = std::max<std::uint64_t>(explained.forecast->steps, 1);
  return control::foresee_loaders(*control::graph_of(config).mix, sources.set(), *std::move(costs),
                                  control::loader_limits(config, explained.workers.cores), steps);
}

/// What cannot be foreseen is no reason to be silent about settings; a stop is.
Result<Explained> explain(const Explain& args, const control::PipelineConfig& config,
                          Runtime& runtime) {
  const StopSignals signals(runtime);
  const CallOptions call{.deadline = kNever, .stop = signals.token()};
  control::IndexingOptions options;
  options.workers = config.limits.workers.value_or(default_workers());
  options.folder = args.index_folder;
  Explained explained;
  Result<SourcesOnDisk> opened = open_indexed_sources(config, runtime, options, call);
  Status failed = opened.status();
  Status no_workers = opened.status();
  if (opened.is_ok()) {
    explained.opened = *std::move(opened);
    if (explained.opened.sources == nullptr) return explained;
    auto forecast = foresee(args, config, *explained.opened.sources, runtime, call);
    failed = no_workers = forecast.status();
    if (forecast.is_ok()) {
      explained.workers.largest_step_bytes = forecast->largest_step_bytes;
      explained.forecast = *std::move(forecast);
      auto workers = foresee_workers(config, explained, runtime, call);
      no_workers = workers.status();
      if (workers.is_ok()) explained.workers.outlook = *std::move(workers);
    }
  }
  for (const Status& status : {failed, no_workers}) {
    if (status.is(ErrorKind::kCancelled)) return status;
  }
  if (!failed.is_ok()) explained.no_forecast = failed.to_string();
  if (!no_workers.is_ok()) explained.workers.no_outlook = no_workers.to_string();
  return explained;
}

Fields source_fields(const control::PipelineConfig& config, std::size_t number,
                     const Explained& explained) {
  const control::SourceConfig& source = config.sources[number];
  Fields fields;
  fields.add("source", source.name)
      .add("format", to_string(source.format))
      .add("takes_part", control::takes_part(source, config.run));
  if (const sources::RecordSource* records = explained.records_of(number)) {
    fields.add("records", records->records())
        .add("tokens", records->totals().tokens)
        .add("empty_records", records->totals().empty_records)
        .add("bad_records", records->totals().bad_records)
        .add("shuffle_window_records", shuffle_window(source, *records))
        .add("index_bytes", index_bytes(*records));
  } else {
    fields.add("records", kUnknown).add("tokens", kUnknown);
  }
  fields.add("files", std::span<const std::string>(source.paths));
  return fields;
}

std::string to_json(const control::PipelineFile& pipeline, const Explained& explained) {
  std::vector<Fields> settings;
  for (const control::Setting& setting : control::settings_of(pipeline.config, pipeline.lines)) {
    settings.emplace_back()
        .add("key", setting.path())
        .add("value", setting.value)
        .add("origin", to_string(setting.origin));
  }
  std::vector<Fields> sources;
  for (std::size_t i = 0; i < pipeline.config.sources.size(); ++i) {
    sources.push_back(source_fields(pipeline.config, i, explained));
  }
  Fields fields;
  fields.add("pipeline", pipeline.file)
      .add("settings", std::span<const Fields>(settings))
      .add("topology", topology_fields(pipeline.config))
      .add("sources", std::span<const Fields>(sources));
  if (explained.forecast) {
    fields.add("forecast", forecast_fields(pipeline.config, *explained.forecast));
  } else {
    fields.add("forecast", explained.no_forecast);
  }
  fields.add("workers", workers_fields(pipeline.config, explained.workers));
  return fields.to_json() + '\n';
}

std::string topology_text(const control::PipelineConfig& config) {
  const model::Topology& axes = config.topology.axes;
  const std::uint32_t ranks = control::ranks_of_a_part(config);
  return fmt::format(
      "# ranks: {}, HDP ranks: {}; one part may span {} of them, and have {} tokens\n",
      axes.world_size(), axes.hdp_size(), ranks,
      std::uint64_t{ranks} * config.topology.capacity_tokens);
}

std::string records_text(const sources::RecordSource* records) {
  if (records == nullptr) return fmt::format("# records: {0}\n# tokens: {0}\n", kUnknown);
  const sources::SidecarTotals& totals = records->totals();
  return fmt::format("# records: {}, of which {} are empty and {} bad\n# tokens: {}\n",
                     totals.records, totals.empty_records, totals.bad_records, totals.tokens);
}

std::string order_text(const control::SourceConfig& source) {
  return source.order == planning::Order::kRandom
             ? "# order: all records are shuffled at once, anew in each pass; there is no window\n"
             : "# order: as they lie in the files, the same in each pass\n";
}

/// What indexes take, beside loaders and constructors.
std::string indexes_text(const control::PipelineConfig& config, const Explained& explained) {
  if (explained.opened.sources == nullptr) return "";
  std::uint64_t bytes = 0;
  std::size_t files = 0;
  for (std::size_t i = 0; i < config.sources.size(); ++i) {
    bytes += index_bytes(*explained.records_of(i));
    files += config.sources[i].paths.size();
  }
  return fmt::format(
      "# indexes: {:.1f} MiB in {} file{}, mapped where records are drawn: the page cache's, "
      "which may drop them\n",
      static_cast<double>(bytes) / (1 << 20), files, files == 1 ? "" : "s");
}

std::string source_text(const control::PipelineConfig& config, std::size_t number,
                        const Explained& explained) {
  const control::SourceConfig& source = config.sources[number];
  const bool takes_part = control::takes_part(source, config.run);
  const std::size_t files = source.paths.size();
  std::string text =
      fmt::format("#\n# source {}: {}, {} file{}{}\n", source.name, to_string(source.format), files,
                  files == 1 ? "" : "s", takes_part ? "" : "; nothing of it is in this split") +
      records_text(explained.records_of(number)) + order_text(source);
  for (std::size_t i = 0; i < std::min(files, kFilesShown); ++i) {
    text += fmt::format("#   {}\n", planning::toml_quoted(source.paths[i]));
  }
  if (files > kFilesShown) {
    text += fmt::format("#   and {} more, which --json lists\n", files - kFilesShown);
  }
  return text;
}

std::string no_forecast_text(const Explained& explained, const std::string& file) {
  std::string text = "what steps will hold: " + explained.no_forecast;
  if (explained.no_forecast == kUnknown) {
    text += fmt::format(": `batchloom index {}` indexes", file);
  }
  return "#\n" + commented(text);
}

}  // namespace

Status run(const Explain& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(control::PipelineFile pipeline,
                      control::read_pipeline(args.pipeline, disk_inputs()));
  BL_RETURN_IF_ERROR(take_split(args.split, pipeline.config));
  BL_ASSIGN_OR_RETURN(const Explained explained, explain(args, pipeline.config, runtime));
  if (args.json) {
    print(to_json(pipeline, explained));
    return Status::ok();
  }
  std::string text = control::describe(pipeline) + '\n' + topology_text(pipeline.config);
  for (std::size_t i = 0; i < pipeline.config.sources.size(); ++i) {
    text += source_text(pipeline.config, i, explained);
  }
  text += explained.forecast ? forecast_text(pipeline.config, *explained.forecast)
                             : no_forecast_text(explained, args.pipeline);
  text +=
      workers_text(pipeline.config, explained.workers) + indexes_text(pipeline.config, explained);
  print(text);
  return Status::ok();
}

}  // namespace batchloom::cli
