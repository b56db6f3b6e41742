// SPDX-License-Identifier: Apache-2.0
// Work on the files of sources, before there are any samples: indexing and opening them. Storage
// may hang in the midst of a call, and nobody can end that. So the work has a thread of its own,
// and whoever waits for it looks at the calls that are out, as slow_samples.h looks at samples: one
// that does not come back is logged, and in the end an error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/construction/monitor.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/control/slow_looks.h"
#include "batchloom/sources/file_calls.h"

namespace batchloom::control {

/// wait() is one thread at a time.
class WatchedWork {
 public:
  /// Begins work(), which tells `calls` of every file that it waits for. Arguments outlive this.
  WatchedWork(Runtime& runtime, const PipelineConfig& config, const sources::FileCalls& calls,
              const SlowLimits& limits, std::function<void()> work);
  /// Waits for the work, however long it hangs.
  ~WatchedWork();
  WatchedWork(const WatchedWork&) = delete;
  WatchedWork& operator=(const WatchedWork&) = delete;

  /// Until the work is done: ok. `unavailable` where a call to a file takes too long, naming file,
  /// source and stage, and what ends `call`.
  Status wait(const CallOptions& call);

 private:
  /// "source 'docs': reading data/docs-0.jsonl".
  std::string describe(const sources::FileCall& out) const;
  Status look(Time now);

  Runtime& runtime_;
  const PipelineConfig& config_;
  const sources::FileCalls& calls_;
  const SlowLimits limits_;
  SlowLooks<sources::FileCall> looks_;
  construction::Monitor<bool> done_;
  std::unique_ptr<Task> task_;  // Last: it uses done_.
};

}  // namespace batchloom::control
