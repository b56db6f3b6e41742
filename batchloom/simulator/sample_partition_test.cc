// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/sample_partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace batchloom::simulator {
namespace {

using testing::HasSubstr;

/// Tokens [lo, hi) of a record of 10 tokens.
store::RunPiece piece(std::uint64_t record, std::uint32_t lo, std::uint32_t hi) {
  store::RunPiece piece;
  piece.sample.source = model::SourceId(2);
  piece.sample.index = model::RecordIndex(record);
  piece.sample_tokens = 10;
  piece.lo = lo;
  piece.hi = hi;
  return piece;
}

Result<RecordRange> records(const std::vector<store::RunPiece>& pieces) {
  SamplePartition partition;
  for (const store::RunPiece& piece : pieces) partition.add(piece);
  return partition.records();
}

void expect_refused(const std::vector<store::RunPiece>& pieces, const std::string& reason) {
  const auto range = records(pieces);
  ASSERT_TRUE(range.is(ErrorKind::kCorruption));
  EXPECT_THAT(range.status().message(), HasSubstr(reason));
}

TEST(SamplePartition, WholeSamplesOneAfterTheOther) {
  EXPECT_EQ(records({piece(4, 0, 10)}).value(), (RecordRange{4, 5}));
  EXPECT_EQ(
      records({piece(5, 7, 10), piece(4, 0, 10), piece(5, 0, 3), piece(6, 0, 10), piece(5, 3, 7)})
          .value(),
      (RecordRange{4, 7}));
}

TEST(SamplePartition, TokensThatNoPieceHolds) {
  expect_refused({piece(4, 1, 10)}, "9 tokens of sample 2:0:4:0, up to token 0");
  expect_refused({piece(4, 0, 9)}, "9 tokens of sample 2:0:4:0, up to token 9 without a gap");
  expect_refused({piece(4, 0, 3), piece(4, 4, 10)}, "up to token 3 without a gap; it has 10");
}

TEST(SamplePartition, TokensThatSeveralPiecesHold) {
  expect_refused({piece(4, 0, 10), piece(4, 0, 10)}, "20 tokens");
  expect_refused({piece(4, 0, 6), piece(4, 5, 10)}, "11 tokens");
  expect_refused({piece(4, 0, 10), piece(4, 0, 3)}, "13 tokens");
  expect_refused({piece(4, 0, 5), piece(4, 0, 5)}, "10 tokens of sample 2:0:4:0, up to token 5");
}

TEST(SamplePartition, RecordsThatAreLeftOut) {
  expect_refused({piece(4, 0, 10), piece(6, 0, 10)}, "sample 2:0:6:0 stands where record 5 is");
  store::RunPiece stranger = piece(5, 0, 10);
  stranger.sample.source = model::SourceId(3);
  expect_refused({piece(4, 0, 10), stranger}, "sample 3:0:5:0 stands where record 5 is next");
  expect_refused({}, "no sample");
}

}  // namespace
}  // namespace batchloom::simulator
