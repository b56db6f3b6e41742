// SPDX-License-Identifier: Apache-2.0
// The pictures of a micro-batch, and the rows of its arrays that stand for them.
#pragma once

#include <cstdint>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/store/run.h"

namespace batchloom::client {

/// A picture that begins in one of the pieces. Borrows the step.
struct PictureSpan {
  std::uint32_t height_px = 0;
  std::uint32_t width_px = 0;
  ByteSpan pixels;  ///< height x width x 3, of 8 bits: red, green, blue.
  // Rows [begin, end) of the micro-batch's arrays, a cell of the grid each, row by row. Where its
  // sample lies on several ranks the others may have the picture's last rows.
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// By ascending `begin`. Tensors that are no pictures (store::kPictureTensor) are passed over.
std::vector<PictureSpan> pictures_of(const store::RunMicroBatch& micro_batch);

}  // namespace batchloom::client
