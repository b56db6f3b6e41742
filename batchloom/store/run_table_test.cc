// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/run_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "batchloom/base/hash.h"
#include "batchloom/store/head.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

using model::HdpRank;
using Rows = std::vector<RunRow>;

// 2 ranks of 3 steps: rows of 52 bytes at 64 and 116, runs from 192 on.
const BatchContext kTableContext{
    .key = "d/key",
    .identity = {.stream = test_uuid(1), .producer = "p", .term = Term(3), .seq = Seq(7)},
    .steps = 3,
    .ranks = 2,
    .size_bytes = 4096};
const Rows kFirst = {{192, 64, 1}, {256, 128, 2}, {384, 64, 3}};
const Rows kSecond = {{448, 64, 4}, {512, 64, 5}, {576, 64, 6}};

Bytes encoded(const Rows& rows, HdpRank rank = HdpRank(0)) {
  return encode_rank_rows(kTableContext.identity, rank, rows);
}
Status complaint(const Rows& rows, HdpRank rank = HdpRank(0)) {
  return decode_rank_rows(kTableContext, rank, encoded(rows, rank)).status();
}
void expect_corruption(const Status& status, std::string_view message) {
  EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << message << ": " << status.to_string();
  EXPECT_NE(status.message().find(message), std::string_view::npos) << status.message();
}

TEST(RunTable, RowsLieAsDocumented) {
  const Bytes bytes = encoded(kFirst);
  ASSERT_EQ(bytes.size(), 52U);
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[16]), 256U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[24]), 128U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[28]), 2U);

  const StreamUuid uuid = test_uuid(1);
  Bytes covered(uuid.bytes.begin(), uuid.bytes.end());
  covered.resize(16 + 24);
  store_le<std::uint64_t>(3, &covered[16]);  // Term.
  store_le<std::uint64_t>(7, &covered[24]);  // Sequence number.
  store_le<std::uint32_t>(0, &covered[32]);  // Rank.
  store_le<std::uint32_t>(1, &covered[36]);  // Bytes of the name.
  covered.push_back(std::byte{'p'});
  covered.insert(covered.end(), bytes.begin(), bytes.begin() + 48);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[48]), crc32c(covered));
}

TEST(RunTable, RowsComeBack) {
  EXPECT_EQ(decode_rank_rows(kTableContext, HdpRank(0), encoded(kFirst)).value(), kFirst);
  EXPECT_EQ(decode_rank_rows(kTableContext, HdpRank(1), encoded(kSecond, HdpRank(1))).value(),
            kSecond);
}

TEST(RunTable, AnEntrysCopyIsAsLargeAsTheHeadExpects) {
  for (const std::uint32_t ranks : {1U, 3U, 128U}) {
    for (std::uint32_t steps = 1; ranks * steps <= kInlineRunRows; ++steps) {
      EXPECT_EQ(ranks * rank_rows_bytes(steps), run_table_max_bytes(ranks, steps));
    }
  }
}

TEST(RunTable, AnyBitFlippedIsCorruption) {
  Bytes bytes = encoded(kFirst);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    expect_corruption(decode_rank_rows(kTableContext, HdpRank(0), bytes).status(),
                      "d/key: at byte 64: damaged");
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    expect_corruption(
        decode_rank_rows(kTableContext, HdpRank(0), ByteSpan(bytes).first(size)).status(),
        "d/key: at byte 64: the run table has " + std::to_string(size) + " bytes of rank 0");
  }
}

TEST(RunTable, AnotherRanksOrObjectsRowsAreNotTaken) {
  const Bytes bytes = encoded(kFirst);
  expect_corruption(decode_rank_rows(kTableContext, HdpRank(1), bytes).status(),
                    "d/key: at byte 116: damaged, or not the run table of rank 1 in batch 7 of p");
  for (const int change : {0, 1, 2, 3}) {
    BatchContext other = kTableContext;
    if (change == 0) other.identity.stream = test_uuid(2);
    if (change == 1) other.identity.producer = "q";
    if (change == 2) other.identity.term = Term(4);
    if (change == 3) other.identity.seq = Seq(8);
    expect_corruption(decode_rank_rows(other, HdpRank(0), bytes).status(), "not the run table");
  }
}

TEST(RunTable, RunsFollowEachOtherInsideTheObject) {
  EXPECT_TRUE(complaint({{192, 64, 1}, {256, 64, 2}, {320, 3712, 3}}).is_ok());
  expect_corruption(complaint({{256, 64, 1}, {320, 64, 2}, {384, 64, 3}}),
                    "d/key: at byte 64: a run of 64 bytes at byte 256; expected one at byte 192");
  expect_corruption(complaint({{192, 64, 1}, {320, 64, 2}, {384, 64, 3}}), "d/key: at byte 80");
  expect_corruption(complaint({{192, 64, 1}, {192, 64, 2}, {256, 64, 3}}), "expected one at");
  expect_corruption(complaint({{192, 64, 1}, {256, 65, 2}, {321, 63, 3}}), "multiples of 64");
  expect_corruption(complaint({{192, 0, 1}, {192, 64, 2}, {256, 64, 3}}), "a run of 0 bytes");
  expect_corruption(complaint({{192, 64, 1}, {256, 64, 2}, {320, 3776, 3}}), "ends by byte 4032");
  expect_corruption(complaint({{128, 64, 4}, {192, 64, 5}, {256, 64, 6}}, HdpRank(1)),
                    "expected one from byte 192");
  expect_corruption(complaint({{UINT64_MAX - 63, 64, 4}, {0, 64, 5}, {64, 64, 6}}, HdpRank(1)),
                    "d/key: at byte 116: a run of 64 bytes at byte 18446744073709551552");
}

class BatchFrontTest : public testing::Test {
 protected:
  static Bytes front(const Rows& first, const Rows& second) {
    Bytes bytes = encode_batch_header(kTableContext, {});
    for (const Bytes& rows : {encoded(first), encoded(second, HdpRank(1))}) {
      bytes.insert(bytes.end(), rows.begin(), rows.end());
    }
    bytes.resize(192);
    return bytes;
  }
  static Result<BatchFront> decode(ByteSpan bytes) {
    return decode_batch_front(kTableContext, bytes);
  }
};

TEST_F(BatchFrontTest, SaysWhereTheRunsEnd) {
  const auto decoded = decode(front(kFirst, kSecond));
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(decoded->runs_end, 640U);
}

TEST_F(BatchFrontTest, RanksFollowEachOtherWithoutGaps) {
  Rows gap = kSecond;
  for (RunRow& row : gap) row.offset_bytes += 64;
  expect_corruption(decode(front(kFirst, gap)).status(),
                    "d/key: at byte 116: the runs of rank 1 do not begin at byte 448");
}

TEST_F(BatchFrontTest, AnyByteChangedIsCorruption) {
  Bytes bytes = front(kFirst, kSecond);
  for (std::size_t place = 0; place < bytes.size(); ++place) {
    for (const std::byte change : {std::byte{1}, std::byte{0x80}}) {
      bytes[place] ^= change;
      expect_corruption(decode(bytes).status(), "d/key: at byte ");
      bytes[place] ^= change;
    }
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    expect_corruption(decode(ByteSpan(bytes).first(size)).status(), "truncated");
  }
}

}  // namespace
}  // namespace batchloom::store
