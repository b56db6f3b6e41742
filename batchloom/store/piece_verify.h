// SPDX-License-Identifier: Apache-2.0
// Turning the slices of a piece into what a rank gets, once they are proven to be right. Shared by
// the readers of runs and of single pieces.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "batchloom/store/run.h"
#include "batchloom/store/run_codec.h"

namespace batchloom::store {

/// A piece as its row tells it. Borrows everything. `slices` fit to the row and the tensors.
struct StoredPiece {
  ObjectPart place;  ///< What holds it; its slices' offsets count from there.
  const RunPieceRow& row;
  std::span<const PieceTensor> tensors;
  const PieceSlices& slices;
};

/// Compares the CRC over all slices with the row's, then looks at the look-ahead and at the order
/// of the labels. `bytes_of` gives a slice's bytes, to which the result will point. `corruption`.
Result<RunPiece> verify_piece(const StoredPiece& piece,
                              const std::function<ByteSpan(const Slice&)>& bytes_of);

}  // namespace batchloom::store
