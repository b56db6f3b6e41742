// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/store/batch_reader.h"

namespace batchloom::client {

/// One rank's part of one step, verified. Immutable; may outlive the consumer.
///
/// Within a micro-batch the pieces' tokens lie back to back, and so do their look-ahead tokens;
/// each of these columns, and each tensor, begins at a multiple of 64 bytes of its buffer.
struct StepBatch {
  store::Step step;
  std::string producer;
  store::TokenWidth token_width = store::TokenWidth::k32;
  std::uint64_t samples_digest = 0;  ///< Of the whole step, all ranks': equal on each of them.
  std::uint64_t plan_digest = 0;     ///< Of the plan that laid it out.
  std::uint64_t global_valid_labels = 0;
  /// Where the step was planned anew, a piece's `crc` is 0: what it was cut from was verified.
  std::vector<store::RunMicroBatch> micro_batches;
  std::vector<store::RunEvent> events;
  /// That were taken from the store for this step; those of a pack count for the step that was
  /// read first.
  std::uint64_t fetched_bytes = 0;

  /// What the pieces' spans point into; steps of a pack share one.
  std::vector<std::shared_ptr<const Bytes>> buffers;

  /// Of tokens, look-ahead tokens, label intervals and tensors, without headers and padding.
  std::uint64_t payload_bytes() const;
};

using StepPtr = std::shared_ptr<const StepBatch>;

/// The samples hash after a step: XXH3-64 over (the hash before it, the step's samples_digest),
/// each as a little-endian u64. 0 before the first step.
std::uint64_t next_samples_hash(std::uint64_t before, std::uint64_t samples_digest);

}  // namespace batchloom::client
