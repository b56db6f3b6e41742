// SPDX-License-Identifier: Apache-2.0
// A training job as bench/pipeline.cc has it: a producer that runs a pipeline, and a rank for each
// part of its steps.
#pragma once

#include <string>
#include <vector>

#include "batchloom/control/pipeline_config.h"

namespace batchloom {

/// How ranks take their steps.
enum class Taken : std::uint8_t {
  kStored,   ///< As views of what is stored.
  kTensors,  ///< As arrays for a trainer.
};

std::string_view to_string(Taken taken);

/// The CPU seconds, user and system, of a job whose producer and ranks are processes with a local
/// directory between them, which is made below `folder` and removed; all that happens from the
/// making to the removal counts.
double run_in_processes(const control::PipelineConfig& config, const std::string& folder,
                        Taken taken);

/// The same of a job in one process, with a store in memory.
double run_in_memory(const control::PipelineConfig& config, Taken taken);

/// Whom a trainer keeps waiting.
struct Waits {
  double share = 0;   ///< Of the ranks' time from the first step on, that went by in next().
  double p99_ms = 0;  ///< Of the calls from the second on.
  std::uint64_t calls = 0;
};

/// A job in processes whose ranks compute for so long in each step: they sleep, as a processor does
/// whose accelerator computes.
Waits run_with_trainers(const control::PipelineConfig& config, const std::string& folder,
                        double compute_s);

}  // namespace batchloom
