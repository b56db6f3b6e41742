// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/picture_spans.h"

#include <algorithm>
#include <cstddef>

namespace batchloom::client {
namespace {

/// Of store::kPictureTensor.
enum Dimension : std::size_t { kRows, kRowPx, kColumns, kColumnPx, kColours, kDimensions };

bool is_picture(const store::TensorInfo& info) {
  return info.name == store::kPictureTensor && info.type == store::TensorType::kU8 &&
         info.shape.size() == kDimensions && info.shape[kColours] == 3;
}

}  // namespace

std::vector<PictureSpan> pictures_of(const store::RunMicroBatch& micro_batch) {
  std::vector<PictureSpan> pictures;
  std::uint32_t piece_begin = 0;
  for (const store::RunPiece& piece : micro_batch.pieces) {
    const std::uint32_t piece_end = piece_begin + piece.hi - piece.lo;
    for (const store::RunPiece::Tensor& tensor : piece.tensors) {
      if (!is_picture(tensor.info)) continue;
      const std::vector<std::uint32_t>& shape = tensor.info.shape;
      const std::uint32_t begin = piece_begin + tensor.token;
      const std::uint32_t cells = shape[kRows] * shape[kColumns];
      pictures.push_back({.height_px = shape[kRows] * shape[kRowPx],
                          .width_px = shape[kColumns] * shape[kColumnPx],
                          .pixels = tensor.bytes,
                          .begin = begin,
                          .end = begin + std::min(cells, piece_end - begin)});
    }
    piece_begin = piece_end;
  }
  return pictures;
}

}  // namespace batchloom::client
