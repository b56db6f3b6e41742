// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/sidecar_view.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/sources/sidecar_testing.h"

namespace batchloom::sources {
namespace {

using objstore::says;

/// What reading the whole index found; nullopt where something could not be told.
struct Reading {
  std::vector<std::optional<ToldRecord>> records;
  std::vector<Status> errors;
};

Reading read_all(ByteSpan bytes) {
  Reading reading;
  const auto view = SidecarView::open("index", bytes);
  if (!view.is_ok()) {
    reading.errors.push_back(view.status());
    return reading;
  }
  for (std::uint64_t i = 0; i < view->totals().records; ++i) {
    const auto payload = view->payload(i);
    reading.records.push_back(payload.is_ok() ? std::optional(told(*payload)) : std::nullopt);
    if (!payload.is_ok()) reading.errors.push_back(payload.status());
  }
  return reading;
}

std::string hex(ByteSpan bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

TEST(SidecarView, TellsWhatWasWritten) {
  const auto records = test_records(11);
  const Bytes bytes = sidecar_bytes(test_header(), records);
  const auto view = SidecarView::open("index", bytes).value();
  EXPECT_EQ(view.header(), test_header());
  EXPECT_EQ(view.totals().records, 11U);
  EXPECT_EQ(view.totals().bad_records, 2U);
  EXPECT_EQ(view.totals().empty_records, 2U);
  EXPECT_EQ(view.totals().tokens, 3U * 7 + 2U * 4 + 2U * 6);
  EXPECT_EQ(view.totals().valid_labels, 3U * 6 + 2U * 2 + 2U * 3);
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(told(view.payload(i).value()), expected(test_header().contents, records[i])) << i;
    EXPECT_EQ(view.record(i).value(), view.payload(i)->record) << i;
  }
  EXPECT_TRUE(view.record(11).is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(view.record(11).status(), "index: record 11 of 11"));
}

TEST(SidecarView, AnEmptyIndexHasNoRecords) {
  const Bytes bytes = sidecar_bytes(test_header(), {});
  EXPECT_EQ(bytes.size(), kSidecarHeaderBytes + kSidecarFooterBytes);
  const auto view = SidecarView::open("index", bytes).value();
  EXPECT_EQ(view.totals(), SidecarTotals{});
  EXPECT_TRUE(view.record(0).is(ErrorKind::kInvalid));
}

TEST(SidecarView, ThePayloadOfALongRecordIsLookedAtOnceForAllItsParts) {
  const std::vector<TestRecord> records = {test_record(0, 100'000), test_record(1, 3),
                                           test_record(2, 100'000)};
  Bytes bytes = sidecar_bytes(test_header(), records);
  const auto view = SidecarView::open("index", bytes).value();
  const ToldRecord first = told(view.payload(0).value());
  // Nobody may do so. It shows whether somebody looks.
  std::byte& damaged = bytes[kSidecarHeaderBytes + 150'000];
  damaged ^= std::byte{1};
  EXPECT_TRUE(view.payload(1).is_ok());
  EXPECT_EQ(told(view.payload(0).value()).record, first.record);
  // Of the one after it that is noted in its stead.
  EXPECT_TRUE(view.payload(2).is_ok());
  EXPECT_TRUE(view.payload(0).is(ErrorKind::kCorruption));
  damaged ^= std::byte{1};
  EXPECT_EQ(told(view.payload(0).value()), first);
}

TEST(SidecarView, IdsAreAlignedToTheirWidth) {
  SidecarHeader header = test_header();
  header.contents.id_width_bytes = 4;
  const Bytes bytes = sidecar_bytes(header, test_records(10));
  const auto view = SidecarView::open("index", bytes).value();
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto payload = view.payload(i).value();
    if (payload.ids.size() == 0) continue;
    EXPECT_EQ((payload.ids.bytes().data() - bytes.data()) % 4, 0) << i;
  }
}

struct GoldenField {
  std::string_view bytes;
  std::string_view what;
};

// The file that docs/formats/sidecar_index.md takes apart.
constexpr GoldenField kGoldenIndex[] = {{"424c5349", "header: magic"},
                                        {"0100", "version"},
                                        {"02", "bytes of an id"},
                                        {"01", "loss intervals"},
                                        {"40e2010000000000", "shard's size"},
                                        {"15cd853dfe9c9717", "shard's time"},
                                        {"efcdab8967452301", "checksum of its ends"},
                                        {"4444333322221111", "tokenizer"},
                                        {"8888777766665555", "fields"},
                                        {"02000000", "records per block"},
                                        {"0000000000000000", "reserved"},
                                        {"1b3e9124", "CRC"},
                                        {"0100000003000000", "payload of record 0: interval"},
                                        {"05000201ffff", "ids"},
                                        {"0000", "padding"},
                                        {"00000000000000002900000000000000", "columns: offsets"},
                                        {"40000000000000005000000000000000", "payloads"},
                                        {"2800000009000000", "sizes"},
                                        {"0300000000000000", "tokens"},
                                        {"02000000ffffffff", "valid labels"},
                                        {"0100000000000000", "intervals"},
                                        {"8b1854d100000000", "CRCs of payloads"},
                                        {"5000000000000000", "directory: place of the columns"},
                                        {"48000000", "size of the columns"},
                                        {"0fc55e63", "CRC of the columns"},
                                        {"04000000", "bytes of a size"},
                                        {"a33e03a8", "CRC"},
                                        {"0200000000000000", "footer: records"},
                                        {"0300000000000000", "tokens"},
                                        {"0200000000000000", "valid labels"},
                                        {"0000000000000000", "empty records"},
                                        {"0100000000000000", "bad records"},
                                        {"9800000000000000", "place of the directory"},
                                        {"00000000", "reserved"},
                                        {"1b3e9124", "CRC of the header"},
                                        {"424c5345", "magic"},
                                        {"d7d6889b", "CRC"}};

TEST(SidecarView, Golden) {
  const Record good{.place = {.offset_bytes = 0, .size_bytes = 40},
                    .ids = {5, 258, 65'535},
                    .loss_mask = {0, 1, 1}};
  const std::vector<TestRecord> records = {
      {.place = good.place, .record = good},
      {.place = {.offset_bytes = 41, .size_bytes = 9}, .record = std::nullopt}};
  const std::string written = hex(sidecar_bytes(test_header(), records));
  std::size_t at = 0;
  for (const GoldenField& field : kGoldenIndex) {
    EXPECT_EQ(written.substr(at, field.bytes.size()), field.bytes) << field.what;
    at += field.bytes.size();
  }
  EXPECT_EQ(written.size(), at);
}

class SidecarDamage : public testing::Test {
 protected:
  /// Nothing that is told is wrong, and something is not told.
  void expect_found(ByteSpan bytes, const std::string& what) const {
    const Reading reading = read_all(bytes);
    ASSERT_FALSE(reading.errors.empty()) << what;
    for (const Status& error : reading.errors) {
      ASSERT_TRUE(error.is(ErrorKind::kCorruption) || error.is(ErrorKind::kNotFound)) << what;
      ASSERT_TRUE(says(error, "index: ")) << what;
    }
    if (reading.records.empty()) return;
    ASSERT_EQ(reading.records.size(), records_.size()) << what;
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (!reading.records[i]) continue;
      ASSERT_EQ(*reading.records[i], expected(test_header().contents, records_[i])) << what;
    }
  }

  const std::vector<TestRecord> records_ = test_records(5);
  const Bytes bytes_ = sidecar_bytes(test_header(), records_);
};

TEST_F(SidecarDamage, EveryBitIsUnderACheck) {
  for (std::size_t at = 0; at < bytes_.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes damaged = bytes_;
      damaged[at] ^= std::byte{1} << bit;
      expect_found(damaged, fmt::format("byte {}, bit {}", at, bit));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(SidecarDamage, EveryByteMayBecomeZeroOrFull) {
  for (std::size_t at = 0; at < bytes_.size(); ++at) {
    for (const auto value : {std::byte{0}, std::byte{0xff}, ~bytes_[at]}) {
      if (bytes_[at] == value) continue;
      Bytes damaged = bytes_;
      damaged[at] = value;
      expect_found(damaged, fmt::format("byte {} = {:02x}", at, std::to_integer<int>(value)));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(SidecarDamage, EveryLengthIsFound) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    expect_found(ByteSpan(bytes_).first(size), fmt::format("{} bytes", size));
    if (HasFatalFailure()) return;
  }
  Bytes longer = bytes_;
  for (int more = 0; more < 100; ++more) {
    longer.push_back(std::byte{0});
    expect_found(longer, fmt::format("{} bytes", longer.size()));
  }
  longer.insert(longer.end(), bytes_.begin(), bytes_.end());
  expect_found(longer, "two files");
}

TEST_F(SidecarDamage, OfOneBlockOrRecordLeavesTheOthers) {
  const auto view = SidecarView::open("index", bytes_).value();
  Bytes damaged = bytes_;
  const auto damage_at = view.payload(1)->ids.bytes().data() - bytes_.data();
  damaged[static_cast<std::size_t>(damage_at)] ^= std::byte{1};
  const Reading of_record = read_all(damaged);
  EXPECT_FALSE(of_record.records[1].has_value());
  EXPECT_EQ(of_record.errors.size(), 1U);

  damaged = bytes_;
  damaged[bytes_.size() - kSidecarFooterBytes - 1] ^= std::byte{1};  // Of the last row: record 4.
  const Reading of_block = read_all(damaged);
  EXPECT_FALSE(of_block.records[4].has_value());
  EXPECT_EQ(of_block.errors.size(), 1U);
}

TEST_F(SidecarDamage, AnotherVersionIsNoIndex) {
  Bytes other = bytes_;
  other[4] = std::byte{2};
  const auto view = SidecarView::open("index", other);
  EXPECT_TRUE(view.is(ErrorKind::kNotFound));
  EXPECT_TRUE(says(view.status(), "index: has format version 2, this build reads 1"));
}

TEST_F(SidecarDamage, AFooterOfAnotherIndexIsFound) {
  SidecarHeader header = test_header();
  header.shard.size_bytes += 1;
  Bytes mixed = sidecar_bytes(header, records_);
  std::copy(bytes_.end() - kSidecarFooterBytes, bytes_.end(), mixed.end() - kSidecarFooterBytes);
  EXPECT_TRUE(says(SidecarView::open("index", mixed).status(), "belongs to another header"));
}

std::vector<TestRecord> any_records() {
  const auto count = *rc::gen::inRange<std::size_t>(0, 20);
  std::vector<TestRecord> records;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto tokens = *rc::gen::inRange<std::uint32_t>(0, 12);
    std::string mask;
    if (*rc::gen::arbitrary<bool>()) {
      for (std::uint32_t token = 0; token < tokens; ++token) {
        mask += *rc::gen::arbitrary<bool>() ? '1' : '0';
      }
    }
    records.push_back(test_record(i, tokens, mask));
    if (*rc::gen::weightedOneOf<bool>({{1, rc::gen::just(true)}, {6, rc::gen::just(false)}})) {
      records.back().record.reset();
    }
    if (*rc::gen::weightedOneOf<bool>({{1, rc::gen::just(true)}, {9, rc::gen::just(false)}})) {
      records.back().place.size_bytes += std::uint64_t{1} << 32;
      if (records.back().record) records.back().record->place = records.back().place;
    }
  }
  return records;
}

RC_GTEST_PROP(SidecarProperty, TellsWhatWasWritten, ()) {
  SidecarHeader header = test_header();
  header.block_records = *rc::gen::inRange<std::uint32_t>(1, 9);
  header.contents.id_width_bytes = *rc::gen::element<std::uint8_t>(0, 2, 4);
  header.contents.loss_intervals = *rc::gen::arbitrary<bool>();
  const auto records = any_records();
  const Bytes bytes = sidecar_bytes(header, records);
  const auto view = SidecarView::open("index", bytes).value();
  RC_ASSERT(view.header() == header);
  RC_ASSERT(view.totals().records == records.size());
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    RC_ASSERT(told(view.payload(i).value()) == expected(header.contents, records[i]));
  }
}

}  // namespace
}  // namespace batchloom::sources
