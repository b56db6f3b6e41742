// SPDX-License-Identifier: Apache-2.0
// Making a batch object: K plans and the samples they name become runs, one per HDP rank and step,
// that a rank reads with one request and can verify alone. The bytes: docs/formats/batch_object.md.
//
//  1. Plans and payloads are compared: whatever a reader would stumble over is refused here.
//  2. Rank by rank, and for each rank step by step, the samples are cut into the plan's pieces;
//     what a piece takes of every column goes into its CRC, and its row into the run's header.
//  3. The index follows, the footer, and last the run table, which had to know where the runs lie.
//
// Token ids and tensors are not copied: the object is a list of parts that borrows them, ready to
// be put. Their bytes are read once, for the CRC, or not at all where that came with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/model/step_plan.h"
#include "batchloom/store/batch_index.h"
#include "batchloom/store/batch_layout.h"
#include "batchloom/store/piece_layout.h"
#include "batchloom/store/tensor.h"

namespace batchloom::store {

/// A picture's pixels, say, or anything else that goes with a sample's token.
struct SampleTensor {
  std::uint32_t token = 0;  ///< The token it belongs to: whichever piece holds that one gets it.
  TensorInfo info;
  ByteSpan bytes;  ///< Borrowed.
};

/// One sample's payload. Everything is borrowed until the object was put.
struct SampleContent {
  ByteSpan tokens;  ///< Token ids, little-endian, in the object's width, as many as planned.
  std::optional<std::uint32_t> next_token;  ///< That follows the sample in its record.
  /// Ascending, apart, not empty. Absent: every label counts that exists (all, or all but the last
  /// where next_token is absent). They must add up to the sample's `valid_labels`.
  std::optional<std::vector<LabelInterval>> labels;
  std::vector<SampleTensor> tensors;  ///< By ascending token.
  /// CRC-32C of `tokens`, where whoever brought them reckoned it while they were in a cache. It
  /// goes into the object as it is; where it is wrong, readers refuse the object.
  std::optional<std::uint32_t> tokens_crc = {};
};

/// One step: the plan, and per plan.samples its payload and where it came from.
struct StepContent {
  const model::StepPlan* plan = nullptr;
  std::span<const SampleContent> samples;
  std::span<const model::SampleMeta> origins;  ///< Ids, tokens and labels equal the plan's.
};

struct BatchOptions {
  BatchIdentity identity;
  TokenWidth token_width = TokenWidth::k32;
  BatchOrigin origin;
};

/// A built object. Movable, not to be copied; `parts` stay valid while it and the samples live.
struct BuiltBatch {
  std::vector<ByteSpan> parts;  ///< In order; together they are the object.
  std::uint64_t size_bytes = 0;
  std::uint64_t payload_bytes = 0;  ///< Of tokens, look-ahead, masks and tensors alone.
  std::uint32_t steps = 0;
  std::uint32_t ranks = 0;
  Bytes run_table;           ///< For the entry; empty where it is too large for one.
  std::vector<Bytes> owned;  ///< What `parts` point to besides the samples.
};

/// Builds the object of 1 or more steps that all have the same number of HDP ranks. Pure but for
/// memory. `invalid`, naming step and sample, where plan and payload disagree: a count, a width, a
/// token id cut short, labels that do not add up, a tensor beyond its sample; where a plan may not
/// be executed (check_plan) or does not carry its digest; and where a run would exceed 4 GiB, or
/// what the index says 1 GiB.
Result<BuiltBatch> build_batch(const BatchOptions& options, std::span<const StepContent> steps);

}  // namespace batchloom::store
