// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "batchloom/control/prepared_sources.h"

namespace batchloom::cli {

/// How many threads of a kind a pipeline takes where nobody says: as many as there are processors.
std::uint32_t default_workers();

/// For IndexingOptions::on_shard of commands whose results are others.
void log_indexed(const control::ShardIndexed& shard);

/// Sources with the files that their readers go through.
struct SourcesOnDisk {
  std::unique_ptr<objstore::FileOps> files;
  std::unique_ptr<control::PreparedSources> sources;
};

/// Indexes what is not indexed, and opens all. `options` as PreparedSources takes them.
Result<SourcesOnDisk> open_sources(const control::PipelineConfig& config, Runtime& runtime,
                                   const control::IndexingOptions& options,
                                   const CallOptions& call);

}  // namespace batchloom::cli
