// SPDX-License-Identifier: Apache-2.0
// A pipeline in one process, from its file's settings to a stream that grows.
//
//  1. Sources are indexed where they are not, opened, and fingerprinted (prepared_sources.h).
//  2. What the stream remembers must be what the pipeline says, or nobody is fenced: the settings
//     that decide membership, and where its producer stands.
//  3. A session fences older ones, and the run goes on from the state that it finds
//     (pipeline_run.h).
//  4. A stream that has all its steps, or whose sources have stopped, is ended; one that is to have
//     more is opened again.
//  5. Meanwhile a reclaimer takes away what nobody needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/pipeline_run.h"
#include "batchloom/control/prepared_sources.h"
#include "batchloom/control/stream_settings.h"
#include "batchloom/store/stream.h"

namespace batchloom::control {

struct PipelineOptions {
  /// Of constructors, and of loaders: to begin with, where limits.workers is "auto"; it is then the
  /// number of cores (loader_scaler.h).
  std::uint32_t workers = 2;
  /// Settings that decide membership have changed, and are to hold from this step on, which must be
  /// the stream's next.
  std::optional<store::Step> change_from = {};
  /// Between two passes of the reclaimer; absent: somebody else reclaims.
  std::optional<Duration> reclaim_every = std::chrono::seconds(10);
  /// As SlowSampleOptions has it.
  Duration sample_max = SlowSampleOptions().sample_max;
};

/// run() once. progress() is thread-safe.
class Pipeline {
 public:
  /// Steps 2 and 3. All arguments outlive it. `invalid` where the stream was made by other
  /// settings, with the differences, or change_from is not its next step; where the
  /// sources stop before a first step (they hold nothing but empty records, say); as
  /// PreparedSources::check_bad_records(); `not_found` where a part of the stream is missing; as
  /// ProducerSession::open().
  static Result<std::unique_ptr<Pipeline>> open(const PipelineConfig& config,
                                                PreparedSources& sources,
                                                const store::Stream& stream,
                                                const PipelineOptions& options,
                                                const CallOptions& call);
  ~Pipeline();

  /// Until the end of what is to be made, or `stop`, after which it can be opened again. Errors:
  /// those of PipelineRun; `invalid` where the sources stopped before a first step.
  Result<RunEnd> run(const std::stop_token& stop);

  PipelineProgress progress() const;
  const store::ProducerSession& session() const;

 private:
  class Impl;
  explicit Pipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::control
