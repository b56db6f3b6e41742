// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "batchloom/base/hash.h"
#include "batchloom/store/run_table.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

// 3 ranks of 2 steps: runs begin at 192; the index lies at 1024 and has 100 bytes.
constexpr Slice kIndex{.offset_bytes = 1024, .size_bytes = 100};
const BatchContext kLayoutContext{
    .key = "d/key",
    .identity = {.stream = test_uuid(1), .producer = "p", .term = Term(3), .seq = Seq(7)},
    .steps = 2,
    .ranks = 3,
    .size_bytes = 1188};

Bytes header() {
  return encode_batch_header(kLayoutContext,
                             {.token_width = TokenWidth::k16, .payload_bytes = 500});
}
Bytes footer() {
  return encode_batch_footer(kLayoutContext.identity.stream, kIndex);
}
Status decode_header(ByteSpan bytes) {
  return decode_batch_header(kLayoutContext, bytes).status();
}
Status decode_footer(ByteSpan bytes) {
  return decode_batch_footer(kLayoutContext, bytes).status();
}

/// The block after `change`, with a right CRC.
Bytes resealed(Bytes block, const std::function<void(Bytes&)>& change) {
  change(block);
  store_le(crc32c(ByteSpan(block).first(60)), &block[60]);
  return block;
}

void expect_error(const Status& status, ErrorKind kind, std::string_view message) {
  EXPECT_TRUE(status.is(kind)) << message << ": " << status.to_string();
  EXPECT_NE(status.message().find(message), std::string_view::npos) << status.message();
}

TEST(BatchHeader, LaysBytesOutAsDocumented) {
  const Bytes bytes = header();
  ASSERT_EQ(bytes.size(), 64U);
  EXPECT_EQ(as_text(ByteSpan(bytes).first(4)), "BLBO");
  EXPECT_EQ(load_le<std::uint16_t>(&bytes[4]), 1U);
  EXPECT_EQ(load_le<std::uint8_t>(&bytes[6]), 2U);
  EXPECT_EQ(load_le<std::uint8_t>(&bytes[7]), 0U);
  EXPECT_TRUE(std::ranges::equal(ByteSpan(bytes).subspan(8, 16), test_uuid(1).bytes));
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[24]), 3U);
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[32]), 7U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[40]), 2U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[44]), 3U);
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[48]), 500U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[56]), 0U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[60]), crc32c(ByteSpan(bytes).first(60)));
  const auto decoded = decode_batch_header(kLayoutContext, bytes);
  ASSERT_TRUE(decoded.is_ok()) << decoded.status().to_string();
  EXPECT_EQ(decoded->token_width, TokenWidth::k16);
  EXPECT_EQ(decoded->payload_bytes, 500U);
}

TEST(BatchFooter, LaysBytesOutAsDocumented) {
  const Bytes bytes = footer();
  ASSERT_EQ(bytes.size(), 64U);
  EXPECT_EQ(as_text(ByteSpan(bytes).first(4)), "BLBE");
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[4]), 1U);
  EXPECT_TRUE(std::ranges::equal(ByteSpan(bytes).subspan(8, 16), test_uuid(1).bytes));
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[24]), 1024U);
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[32]), 100U);
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[40]), 1188U);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[60]), crc32c(ByteSpan(bytes).first(60)));
  const auto index = decode_batch_footer(kLayoutContext, bytes);
  ASSERT_TRUE(index.is_ok()) << index.status().to_string();
  EXPECT_EQ(*index, kIndex);
}

TEST(BatchEnds, AnyBitFlippedIsCorruption) {
  const struct {
    Bytes bytes;
    Status (*decode)(ByteSpan);
  } ends[] = {{header(), decode_header}, {footer(), decode_footer}};
  for (const auto& end : ends) {
    Bytes bytes = end.bytes;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      expect_error(end.decode(bytes), ErrorKind::kCorruption, "d/key: at byte ");
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      expect_error(end.decode(ByteSpan(bytes).first(size)), ErrorKind::kCorruption, "truncated");
    }
  }
}

TEST(BatchEnds, WhatIsNoBatchObjectIsSaidToBeNone) {
  const auto other = [](Bytes& block) { block[3] = std::byte{'X'}; };
  expect_error(decode_header(resealed(header(), other)), ErrorKind::kCorruption,
               "d/key: at byte 0: no header of a batch object (the magic is missing)");
  expect_error(decode_footer(resealed(footer(), other)), ErrorKind::kCorruption,
               "d/key: at byte 1124: no footer of a batch object (the magic is missing)");
  expect_error(decode_header(footer()), ErrorKind::kCorruption, "the magic is missing");
}

TEST(BatchEnds, AVersionFromTheFutureIsNoDamage) {
  const auto newer = [](Bytes& block) { store_le<std::uint16_t>(kFormatVersion + 1, &block[4]); };
  expect_error(decode_header(resealed(header(), newer)), ErrorKind::kInvalid,
               "d/key: at byte 4: the header has format version 2");
  expect_error(decode_footer(resealed(footer(), newer)), ErrorKind::kInvalid, "upgrade batchloom");
  const auto codec = [](Bytes& block) { block[7] = std::byte{1}; };
  expect_error(decode_header(resealed(header(), codec)), ErrorKind::kInvalid, "codec 1");
}

TEST(BatchEnds, AnotherObjectsAreRecognised) {
  BatchContext other = kLayoutContext;
  other.identity.stream = test_uuid(2);
  expect_error(decode_batch_header(other, header()).status(), ErrorKind::kCorruption,
               "d/key: at byte 8: belongs to stream " + test_uuid(1).to_string());
  expect_error(decode_batch_footer(other, footer()).status(), ErrorKind::kCorruption,
               "d/key: at byte 1132: belongs to stream");
  other = kLayoutContext;
  other.identity.seq = Seq(8);
  expect_error(decode_batch_header(other, header()).status(), ErrorKind::kCorruption,
               "is batch 7 in term 3, expected batch 8 of p in term 3");
  other.identity = kLayoutContext.identity;
  other.steps = 1;
  expect_error(decode_batch_header(other, header()).status(), ErrorKind::kCorruption,
               "has 2 steps and 3 ranks, its entry says 1 and 3");
  other = kLayoutContext;
  other.size_bytes = 1252;
  expect_error(decode_batch_footer(other, footer()).status(), ErrorKind::kCorruption,
               "states an object of 1188 bytes, its entry says 1252");
}

TEST(BatchHeader, RulesHoldUnderARightCrc) {
  const auto complaint = [](const std::function<void(Bytes&)>& change) {
    return decode_header(resealed(header(), change));
  };
  expect_error(complaint([](Bytes& block) { block[6] = std::byte{3}; }), ErrorKind::kCorruption,
               "token ids of 3 bytes");
  expect_error(complaint([](Bytes& block) { block[57] = std::byte{1}; }), ErrorKind::kCorruption,
               "d/key: at byte 57: padding is not zero");
  expect_error(complaint([](Bytes& block) { store_le<std::uint64_t>(1189, &block[48]); }),
               ErrorKind::kCorruption, "a payload of 1189 bytes");
}

TEST(BatchFooter, RulesHoldUnderARightCrc) {
  const auto complaint = [](const std::function<void(Bytes&)>& change) {
    return decode_footer(resealed(footer(), change));
  };
  for (const std::size_t place : {6U, 48U, 59U}) {
    expect_error(complaint([&](Bytes& block) { block[place] = std::byte{1}; }),
                 ErrorKind::kCorruption, "padding is not zero");
  }
  const auto index_at = [&](std::uint64_t offset, std::uint64_t size) {
    return complaint([&](Bytes& block) {
      store_le(offset, &block[24]);
      store_le(size, &block[32]);
    });
  };
  EXPECT_TRUE(index_at(960, 164).is_ok());
  const std::string reason = "d/key: at byte 1148: states an index of ";
  expect_error(index_at(1025, 99), ErrorKind::kCorruption, reason);
  expect_error(index_at(1024, 101), ErrorKind::kCorruption, reason);
  expect_error(index_at(1152, UINT64_MAX - 27), ErrorKind::kCorruption, reason);
  expect_error(index_at(512, 612), ErrorKind::kCorruption, reason + "612 bytes at byte 512");
}

TEST(BatchLayout, RunsFollowTheTable) {
  EXPECT_EQ(rank_rows_offset(model::HdpRank(0), 2), 64U);
  EXPECT_EQ(rank_rows_offset(model::HdpRank(2), 2), 136U);
  EXPECT_EQ(first_run_offset(3, 2), 192U);
}

}  // namespace
}  // namespace batchloom::store
