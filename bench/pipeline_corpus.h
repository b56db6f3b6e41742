// SPDX-License-Identifier: Apache-2.0
// What bench/pipeline.cc reads: a Megatron pair of samples of one size, the pipeline over it, and
// in which order that pipeline stores them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/control/pipeline_config.h"

namespace batchloom {

inline constexpr std::uint32_t kPipelineRanks = 8;
inline constexpr std::uint64_t kPipelineStepBytes = std::uint64_t{8} << 20;
inline constexpr std::uint32_t kPipelineTokenBytes = 2;

/// A corpus on a disk.
struct Corpus {
  std::string data;  ///< The .bin file.
  std::uint64_t sample_bytes = 0;
  std::uint64_t steps = 0;  ///< That one pass makes.

  std::uint64_t samples_per_step() const { return kPipelineStepBytes / sample_bytes; }
  std::uint64_t samples() const { return steps * samples_per_step(); }
};

/// Writes it below `folder`, which exists. It is in the page cache then.
Corpus write_corpus(const std::string& folder, std::uint64_t sample_bytes, std::uint64_t steps);

/// Samples in a random order for 8 ranks, in micro-batches of 16 Ki tokens or of one larger sample;
/// as many steps as are asked for.
control::PipelineConfig pipeline_over(const Corpus& corpus, std::uint64_t steps);

/// Indexes the corpus, and plans its steps: the numbers of their samples, rank by rank, as they lie
/// in the batch objects.
std::vector<std::vector<std::uint64_t>> stored_order(Runtime& runtime,
                                                     const control::PipelineConfig& config);

/// The CPU seconds of nothing but the copies: step by step, samples are gathered from the
/// memory-mapped file, written as a file, read back, and the file is removed. Two buffers serve all
/// steps. `folder` exists.
double cpu_of_bare_copies(const Corpus& corpus,
                          const std::vector<std::vector<std::uint64_t>>& order,
                          const std::string& folder);

}  // namespace batchloom
