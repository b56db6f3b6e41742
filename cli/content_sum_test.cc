// SPDX-License-Identifier: Apache-2.0
#include "cli/content_sum.h"

#include <gtest/gtest.h>

namespace batchloom::cli {
namespace {

using store::RunMicroBatch;
using store::RunPiece;

constexpr std::uint32_t kTokens = 10;

/// A sample of 16-bit ids, the one that follows it behind them, and cuts of it.
class Sample {
 public:
  explicit Sample(std::uint16_t first_id = 100) : ids_(2 * (kTokens + 1)) {
    for (std::size_t i = 0; i <= kTokens; ++i) {
      store_le(static_cast<std::uint16_t>(first_id + i), ids_.data() + 2 * i);
    }
  }

  RunPiece piece(std::uint32_t lo, std::uint32_t hi) const {
    RunPiece piece;
    piece.sample.index = model::RecordIndex(5);
    piece.sample_tokens = kTokens;
    piece.lo = lo;
    piece.hi = hi;
    piece.has_next_token = true;
    piece.tokens = ByteSpan(ids_).subspan(2 * lo, 2 * (hi - lo));
    piece.next_token = ByteSpan(ids_).subspan(2 * hi, 2);
    piece.all_labels = true;
    return piece;
  }

 private:
  Bytes ids_;
};

std::uint64_t sum(const std::vector<RunPiece>& pieces) {
  RunMicroBatch micro_batch;
  micro_batch.pieces = pieces;
  return content_sum({micro_batch}, store::TokenWidth::k16);
}

TEST(ContentSum, DoesNotDependOnWhereASampleIsCut) {
  const Sample sample;
  const std::uint64_t whole = sum({sample.piece(0, 10)});
  EXPECT_EQ(sum({sample.piece(0, 3), sample.piece(3, 10)}), whole);
  EXPECT_EQ(sum({sample.piece(7, 10)}) + sum({sample.piece(0, 7)}), whole);
  EXPECT_NE(sum({sample.piece(0, 9)}), whole);
}

TEST(ContentSum, CutsLabelsToo) {
  const Sample sample;
  RunPiece whole = sample.piece(0, 10), left = sample.piece(0, 4), right = sample.piece(4, 10);
  for (RunPiece* piece : {&whole, &left, &right}) piece->all_labels = false;
  whole.labels = {{2, 6}};
  left.labels = {{2, 4}};
  right.labels = {{0, 2}};
  EXPECT_EQ(sum({left, right}), sum({whole}));
  EXPECT_NE(sum({whole}), sum({sample.piece(0, 10)}));
}

TEST(ContentSum, DependsOnAllThatIsTrainedOn) {
  const std::uint64_t before = sum({Sample().piece(0, 10)});
  const Sample sample, other(101);
  RunPiece piece = sample.piece(0, 10);
  piece.sample.part = model::PartIndex(1);
  EXPECT_NE(sum({piece}), before);
  piece = sample.piece(0, 10);
  piece.next_token = other.piece(0, 10).next_token;
  EXPECT_NE(sum({piece}), before);
  piece = sample.piece(0, 10);
  piece.has_next_token = false;  // The end of its record: the last token has no label.
  EXPECT_NE(sum({piece}), before);
  EXPECT_NE(sum({other.piece(0, 10)}), before);
  EXPECT_EQ(sum({}), 0u);
}

}  // namespace
}  // namespace batchloom::cli
