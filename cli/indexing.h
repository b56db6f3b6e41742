// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "batchloom/control/prepared_sources.h"
#include "batchloom/control/watched_work.h"

namespace batchloom::cli {

/// How many threads of a kind a pipeline takes where nobody says: as many as there are processors.
std::uint32_t default_workers();

/// For IndexingOptions::on_shard of commands whose results are others.
void log_indexed(const control::ShardIndexed& shard);

/// Sources with the files that their readers go through.
struct SourcesOnDisk {
  std::unique_ptr<objstore::FileOps> files;
  std::unique_ptr<sources::FileCalls> calls;
  std::unique_ptr<control::PreparedSources> sources;
};

/// Whose files are watched, and how long one may take.
struct FilesWatched {
  Runtime& runtime;
  const control::PipelineConfig& config;
  const sources::FileCalls& calls;
  control::SlowLimits limits = {};
};

/// Does work(), which `call` also ends. `unavailable` where a file hangs, as WatchedWork has it;
/// then, as after an end of `call`, the process ends within kEndsWithinS even if it still hangs.
Status watch_files(const FilesWatched& files, const std::function<void()>& work,
                   const CallOptions& call);

/// Indexes what is not indexed, and opens all. `options` as PreparedSources takes them, but for
/// calls. As watch_files().
Result<SourcesOnDisk> open_sources(const control::PipelineConfig& config, Runtime& runtime,
                                   control::IndexingOptions options, const CallOptions& call,
                                   const control::SlowLimits& limits = {});

/// Opens all, and makes nothing: sources are null where something is not indexed. Else as
/// open_sources().
Result<SourcesOnDisk> open_indexed_sources(const control::PipelineConfig& config, Runtime& runtime,
                                           control::IndexingOptions options,
                                           const CallOptions& call,
                                           const control::SlowLimits& limits = {});

}  // namespace batchloom::cli
