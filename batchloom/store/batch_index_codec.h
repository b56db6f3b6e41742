// SPDX-License-Identifier: Apache-2.0
// How the index is written: what the builder has gathered, encoded. Included by the builder and
// tests only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/store/batch_index.h"
#include "batchloom/store/codec.h"
#include "batchloom/store/piece_rows.h"

namespace batchloom::store {

/// A step's rows. Borrows plan and origins.
struct IndexStepRows {
  const model::StepPlan* plan = nullptr;
  std::span<const model::SampleMeta> origins;
  std::vector<std::uint64_t> micro_batches;  ///< Where the columns of each begin, by plan order.
  std::vector<PieceFacts> pieces;            ///< By plan.pieces.
  std::vector<PieceTensor> tensors;          ///< Piece by piece.
};

struct BatchIndexRows {
  BatchIdentity identity;
  TokenWidth token_width = TokenWidth::k32;
  const BatchOrigin* origin = nullptr;
  std::vector<IndexStepRows> steps;
};

/// Upper bound of the encoded index.
std::uint64_t encoded_bound(const BatchIndexRows& rows);

/// Precondition: encoded_bound() is below kSectionMaxBytes; the plans carry their digests.
Bytes encode_batch_index(const BatchIndexRows& rows);

/// Ok, or `invalid` naming what is too long.
Status check_origin(const BatchOrigin& origin);

}  // namespace batchloom::store
