// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/piece_layout.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>

namespace batchloom::store {
namespace {

TEST(PieceLayout, LiesAsDocumented) {
  // Two pieces of 40 and 30 ids of 2 bytes; the second has 3 label intervals and 2 tensors.
  const std::vector<PieceCounts> pieces = {{.tokens = 40}, {30, 3, 2}};
  const std::vector<std::uint64_t> sizes = {64, 1};
  const MicroBatchColumns columns = lay_out(1024, TokenWidth::k16, pieces, sizes);
  EXPECT_EQ(columns.tokens, (Slice{1024, 140}));
  EXPECT_EQ(columns.next_tokens, (Slice{1216, 4}));
  EXPECT_EQ(columns.labels, (Slice{1280, 24}));
  EXPECT_EQ(columns.tensors, (std::vector<Slice>{{1344, 64}, {1408, 1}}));
  EXPECT_EQ(columns.end, 1472U);

  PieceWalk walk(columns, TokenWidth::k16);
  const PieceSlices first = walk.next(pieces[0]);
  EXPECT_EQ(first.tokens, (Slice{1024, 80}));
  EXPECT_EQ(first.next_token, (Slice{1216, 2}));
  EXPECT_EQ(first.labels, (Slice{1280, 0}));
  EXPECT_TRUE(first.tensors.empty());
  const PieceSlices second = walk.next(pieces[1]);
  EXPECT_EQ(second.tokens, (Slice{1104, 60}));
  EXPECT_EQ(second.next_token, (Slice{1218, 2}));
  EXPECT_EQ(second.labels, (Slice{1280, 24}));
  EXPECT_EQ(second.tensors, columns.tensors);
}

TEST(PieceLayout, AFillerTakesNoBytes) {
  EXPECT_EQ(lay_out(128, TokenWidth::k32, {}, {}).end, 128U);
}

TEST(PieceLayout, TheLargestCountsDoNotOverflow) {
  const std::vector<PieceCounts> pieces(2, {UINT32_MAX, UINT32_MAX, 0});
  const MicroBatchColumns columns = lay_out(64, TokenWidth::k32, pieces, {});
  EXPECT_EQ(columns.tokens.size_bytes, 2 * 4 * std::uint64_t{UINT32_MAX});
  EXPECT_EQ(columns.labels.size_bytes, 2 * 8 * std::uint64_t{UINT32_MAX});
}

RC_GTEST_PROP(PieceLayout, ColumnsAscendAlignedAndPiecesTileThem, ()) {
  const TokenWidth width = *rc::gen::element(TokenWidth::k16, TokenWidth::k32);
  std::vector<PieceCounts> pieces;
  std::vector<std::uint64_t> sizes;
  for (const auto& [tokens, intervals, tensors] :
       *rc::gen::arbitrary<std::vector<std::tuple<std::uint8_t, std::uint8_t, bool>>>()) {
    pieces.push_back({tokens, intervals, tensors ? 1U : 0U});
    if (tensors) sizes.push_back(1 + tokens);
  }
  const MicroBatchColumns columns = lay_out(64, width, pieces, sizes);

  std::vector<Slice> all = {columns.tokens, columns.next_tokens, columns.labels};
  all.insert(all.end(), columns.tensors.begin(), columns.tensors.end());
  std::uint64_t at = 64;
  for (const Slice& column : all) {
    RC_ASSERT(column.offset_bytes == at);
    RC_ASSERT(at % kColumnAlignBytes == 0);
    at = column_aligned(column.end());
    RC_ASSERT(at - column.end() < kColumnAlignBytes);
  }
  RC_ASSERT(at == columns.end);

  PieceWalk walk(columns, width);
  std::uint64_t tokens_at = columns.tokens.offset_bytes;
  std::uint64_t next_at = columns.next_tokens.offset_bytes;
  std::uint64_t labels_at = columns.labels.offset_bytes;
  for (const PieceCounts& piece : pieces) {
    const PieceSlices slices = walk.next(piece);
    RC_ASSERT(slices.tokens == (Slice{tokens_at, piece.tokens * token_bytes(width)}));
    RC_ASSERT(slices.next_token == (Slice{next_at, token_bytes(width)}));
    RC_ASSERT(slices.labels == (Slice{labels_at, 8 * std::uint64_t{piece.label_intervals}}));
    RC_ASSERT(slices.tensors.size() == piece.tensors);
    tokens_at = slices.tokens.end();
    next_at = slices.next_token.end();
    labels_at = slices.labels.end();
  }
  RC_ASSERT(tokens_at == columns.tokens.end());
  RC_ASSERT(next_at == columns.next_tokens.end());
  RC_ASSERT(labels_at == columns.labels.end());
}

}  // namespace
}  // namespace batchloom::store
