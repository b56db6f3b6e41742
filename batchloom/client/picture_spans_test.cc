// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/picture_spans.h"

#include <gtest/gtest.h>

namespace batchloom::client {
namespace {

using store::RunMicroBatch;
using store::RunPiece;

RunPiece::Tensor picture_at(std::uint32_t token, std::vector<std::uint32_t> shape,
                            const Bytes& pixels) {
  return {.token = token,
          .info = {.name = "image", .type = store::TensorType::kU8, .shape = std::move(shape)},
          .bytes = pixels};
}

RunPiece piece_of(std::uint32_t lo, std::uint32_t hi, std::vector<RunPiece::Tensor> tensors) {
  RunPiece piece;
  piece.lo = lo;
  piece.hi = hi;
  piece.tensors = std::move(tensors);
  return piece;
}

TEST(PictureSpans, CountRowsOfTheMicroBatch) {
  const Bytes pixels(2 * 4 * 3 * 4 * 3);
  RunMicroBatch micro_batch;
  micro_batch.pieces.push_back(piece_of(0, 10, {}));
  micro_batch.pieces.push_back(piece_of(5, 25, {picture_at(3, {2, 4, 3, 4, 3}, pixels)}));
  const auto pictures = pictures_of(micro_batch);
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(pictures[0].height_px, 8U);
  EXPECT_EQ(pictures[0].width_px, 12U);
  EXPECT_EQ(pictures[0].pixels.data(), pixels.data());
  EXPECT_EQ(pictures[0].begin, 13U);
  EXPECT_EQ(pictures[0].end, 19U);
}

TEST(PictureSpans, EndWithTheirPiece) {
  const Bytes pixels(12);
  RunMicroBatch micro_batch;
  micro_batch.pieces.push_back(piece_of(0, 10, {picture_at(7, {2, 1, 2, 1, 3}, pixels)}));
  micro_batch.pieces.push_back(piece_of(0, 10, {}));
  const auto pictures = pictures_of(micro_batch);
  ASSERT_EQ(pictures.size(), 1U);
  EXPECT_EQ(pictures[0].begin, 7U);
  EXPECT_EQ(pictures[0].end, 10U);
}

TEST(PictureSpans, PassOverWhatIsNoPicture) {
  const Bytes bytes(12);
  RunMicroBatch micro_batch;
  micro_batch.pieces.push_back(
      piece_of(0, 10, {picture_at(0, {2, 2, 3}, bytes), picture_at(1, {1, 1, 1, 1, 4}, bytes)}));
  micro_batch.pieces[0].tensors.push_back(picture_at(2, {2, 1, 2, 1, 3}, bytes));
  micro_batch.pieces[0].tensors[2].info.name = "other";
  EXPECT_TRUE(pictures_of(micro_batch).empty());
}

}  // namespace
}  // namespace batchloom::client
