// SPDX-License-Identifier: Apache-2.0
// A rank's part of a step as the arrays that trainers take, in one buffer, filled in one pass over
// the stored tokens.
//
//   tokens      int32  the ids
//   labels      int64  of each token the one after it in its record; kNoLabel at the end of a
//                      record, and where the label does not count
//   positions   int32  of each token in its record
//   cu_seqlens  int32  0, and where each piece ends: attention does not cross pieces
//
//  1. A micro-batch's pieces lie one behind the other, without padding.
//  2. The label of a piece's last token is its look-ahead, wherever the token after it is stored.
//  3. A filler is one token, 0, without a label: what a rank runs so that collectives match.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/client/buffer_pool.h"
#include "batchloom/client/step_batch.h"

namespace batchloom::client {

/// What frameworks' losses leave out by default.
inline constexpr std::int64_t kNoLabel = -100;

/// Of one micro-batch. Each begins at a multiple of 64 bytes in memory.
struct MicroBatchArrays {
  std::span<std::int32_t> tokens;
  std::span<std::int64_t> labels;
  std::span<std::int32_t> positions;
  std::span<std::int32_t> cu_seqlens;  ///< One more than pieces.
};

/// The arrays belong to whoever holds this, and may be changed.
struct TrainerView {
  StepPtr step;                                 ///< What they were made from.
  std::vector<MicroBatchArrays> micro_batches;  ///< By step->micro_batches.
  PooledBuffer buffer;
};

/// `invalid`, naming the sample, where a token id, a position or a micro-batch's tokens are more
/// than an int32 holds. Does not block.
Result<TrainerView> view_for_trainer(StepPtr step, BufferPool& pool);

}  // namespace batchloom::client
