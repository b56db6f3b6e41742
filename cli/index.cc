// SPDX-License-Identifier: Apache-2.0
// `batchloom index`: what a pipeline reads, tokenized and counted once.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "cli/commands.h"
#include "cli/indexing.h"
#include "cli/pipeline_inputs.h"
#include "cli/stop_signals.h"

namespace batchloom::cli {
namespace {

Fields describe_shard(const control::ShardIndexed& shard) {
  Fields fields;
  fields.add("shard", shard.path)
      .add("records", shard.totals.records)
      .add("tokens", shard.totals.tokens)
      .add("valid_labels", shard.totals.valid_labels)
      .add("empty_records", shard.totals.empty_records)
      .add("bad_records", shard.totals.bad_records);
  return fields;
}

Fields describe_source(const control::SourceConfig& source, const sources::RecordSource& records) {
  const sources::SidecarTotals& totals = records.totals();
  Fields fields;
  fields.add("source", source.name)
      .add("shards", std::uint64_t{records.shards().size()})
      .add("records", totals.records)
      .add("tokens", totals.tokens)
      .add("valid_labels", totals.valid_labels)
      .add("empty_records", totals.empty_records)
      .add("bad_records", totals.bad_records);
  return fields;
}

struct Opening {
  const control::PipelineConfig& config;
  Runtime& runtime;
  control::SlowLimits limits;
};

using OpenSources = std::function<Result<std::unique_ptr<control::PreparedSources>>(
    objstore::FileOps&, const control::IndexingOptions&)>;

/// open(), while its files are watched.
Result<SourcesOnDisk> open_watched(const Opening& opening, control::IndexingOptions options,
                                   const OpenSources& open, const CallOptions& call) {
  SourcesOnDisk opened;
  opened.files = objstore::make_posix_file_ops();
  opened.calls = std::make_unique<sources::FileCalls>();
  options.calls = opened.calls.get();
  Result<std::unique_ptr<control::PreparedSources>> sources(nullptr);
  const auto work = [&] { sources = open(*opened.files, options); };
  const FilesWatched files{opening.runtime, opening.config, *opened.calls, opening.limits};
  BL_RETURN_IF_ERROR(watch_files(files, work, call));
  BL_ASSIGN_OR_RETURN(opened.sources, std::move(sources));
  return opened;
}

}  // namespace

std::uint32_t default_workers() {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  return static_cast<std::uint32_t>(std::clamp(processors, 1L, 64L));
}

void log_indexed(const control::ShardIndexed& shard) {
  log_info(fmt::format("indexed {}: {} records, {} tokens, {} bad", shard.path,
                       shard.totals.records, shard.totals.tokens, shard.totals.bad_records));
}

Status watch_files(const FilesWatched& files, const std::function<void()>& work,
                   const CallOptions& call) {
  control::WatchedWork watched(files.runtime, files.config, files.calls, files.limits, work);
  const Status done = watched.wait(call);
  if (!done.is_ok()) end_within(kEndsWithinS);
  return done.is(ErrorKind::kUnavailable) ? done : Status::ok();
}

Result<SourcesOnDisk> open_sources(const control::PipelineConfig& config, Runtime& runtime,
                                   control::IndexingOptions options, const CallOptions& call,
                                   const control::SlowLimits& limits) {
  const auto open = [&](objstore::FileOps& files, const control::IndexingOptions& watched) {
    return control::PreparedSources::open(config, files, runtime, watched, call);
  };
  return open_watched({config, runtime, limits}, std::move(options), open, call);
}

Result<SourcesOnDisk> open_indexed_sources(const control::PipelineConfig& config, Runtime& runtime,
                                           control::IndexingOptions options,
                                           const CallOptions& call,
                                           const control::SlowLimits& limits) {
  const auto open = [&](objstore::FileOps&, const control::IndexingOptions& watched) {
    return control::PreparedSources::open_indexed(config, runtime, watched, call);
  };
  return open_watched({config, runtime, limits}, std::move(options), open, call);
}

Status run(const IndexSources& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const control::PipelineFile pipeline,
                      control::read_pipeline(args.pipeline, disk_inputs()));
  const StopSignals signals(runtime);
  control::IndexingOptions options;
  options.workers = default_workers();
  options.folder = args.index_folder;
  options.on_shard = [&](const control::ShardIndexed& shard) {
    print_row(describe_shard(shard), args.json);
  };
  BL_ASSIGN_OR_RETURN(const SourcesOnDisk opened,
                      open_sources(pipeline.config, runtime, options,
                                   {.deadline = kNever, .stop = signals.token()}));
  const CallOptions until_signal{.deadline = kNever, .stop = signals.token()};
  for (std::uint32_t i = 0; i < pipeline.config.sources.size(); ++i) {
    const model::SourceId source(i);
    Fields fields =
        describe_source(pipeline.config.sources[i], opened.sources->set().source(source));
    BL_ASSIGN_OR_RETURN(const auto bad, opened.sources->first_bad(source, until_signal));
    if (bad) fields.add("first_bad", *bad);
    print_row(fields, args.json);
  }
  return Status::ok();
}

}  // namespace batchloom::cli
