// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "batchloom/base/runtime.h"
#include "batchloom/control/pipeline.h"

namespace batchloom::cli {

/// How far a pipeline is, on stderr: on a terminal one line that is written anew every half second,
/// else a line every ten seconds. Until it is destroyed.
class ProgressLine {
 public:
  /// All outlive it.
  ProgressLine(Runtime& runtime, const control::PipelineConfig& config,
               const control::Pipeline& pipeline);
  ~ProgressLine();

 private:
  void work(const std::stop_token& stop);

  Runtime& runtime_;
  const control::PipelineConfig& config_;
  const control::Pipeline& pipeline_;
  const bool is_terminal_;
  std::unique_ptr<Task> task_;
};

/// What a run did between two looks, and where it stands.
struct ProgressLook {
  control::PipelineProgress before;
  control::PipelineProgress now;
  double seconds = 0;  ///< Between both.
};

/// "step 41, 3.2 steps/s, 1.7 Mtokens/s, lead 12 of 32, imbalance 1.81 -> 1.02, memory 240 MiB,
/// waiting for source docs".
std::string progress_text(const control::PipelineConfig& config, const ProgressLook& look);

}  // namespace batchloom::cli
