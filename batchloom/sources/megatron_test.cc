// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/megatron.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "batchloom/sources/megatron_index.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

constexpr std::size_t kData = 0;
constexpr std::size_t kIndex = 1;

std::unique_ptr<Tokenizer> ids_below(std::uint32_t vocab, std::vector<TokenId> begin = {},
                                     std::vector<TokenId> end = {}) {
  return make_ids_tokenizer({.vocab = vocab, .begin = std::move(begin), .end = std::move(end)})
      .value();
}

const Tokenizer& wide_ids() {
  static const std::unique_ptr<Tokenizer> tokenizer = ids_below(65'536);
  return *tokenizer;
}

Result<std::unique_ptr<ShardReader>> open_pair(ShardFiles files, const Tokenizer& tokenizer,
                                               const ReadLimits& limits = {}) {
  return open_megatron({.data = std::move(files[kData]), .index = std::move(files[kIndex])}, limits,
                       tokenizer, {});
}

std::vector<Bytes> pair_of(const std::string& name) {
  return {fixture_bytes(name + ".bin"), fixture_bytes(name + ".idx")};
}

/// Bytes in memory, with names as on a disk.
ShardFiles named(const std::vector<Bytes>& pair) {
  ShardFiles files;
  files.push_back(read_bytes("a.bin", pair[kData]));
  files.push_back(read_bytes("a.idx", pair[kIndex]));
  return files;
}

ReaderFormat megatron_format(const std::string& name) {
  const std::string file = "megatron_" + name;
  return {.name = name,
          .files = pair_of(file),
          .empty_files = pair_of("megatron_empty"),
          .records = fixture_records(file),
          .open = [](ShardFiles files) { return open_pair(std::move(files), wide_ids()); },
          .may_change_records =
              [](std::size_t changed, std::size_t offset) {
                // Ids, and bounds between documents: nothing else says what they were. The bounds
                // of seven sequences in six documents lie behind 7 x 12 bytes.
                constexpr std::size_t kBoundsAt = 34 + 7 * 12;
                return changed == kData || (offset >= kBoundsAt && offset < kBoundsAt + 7 * 8);
              }};
}

INSTANTIATE_TEST_SUITE_P(Megatron, ReaderConformance,
                         testing::Values(megatron_format("u8"), megatron_format("i8"),
                                         megatron_format("i16"), megatron_format("u16"),
                                         megatron_format("i32"), megatron_format("i64"),
                                         megatron_format("modes")),
                         format_name);

TEST(Megatron, SixteenBitsHaveNoSign) {
  const auto reader = open_pair(named(pair_of("megatron_wide")), wide_ids()).value();
  Record record;
  ASSERT_FALSE(read_record(*reader, 0, record).value().has_value());
  EXPECT_EQ(record, fixture_records("megatron_wide")[0]);
  EXPECT_EQ(reader->name(), "a.bin");
}

TEST(Megatron, IdsAreSetAroundWholeDocuments) {
  const auto tokenizer = ids_below(200, {100}, {101, 102});
  const auto reader = open_pair(named(pair_of("megatron_u8")), *tokenizer).value();
  Record record;
  ASSERT_FALSE(read_record(*reader, 1, record).value().has_value());
  EXPECT_EQ(record.ids, (std::vector<TokenId>{100, 4, 5, 6, 7, 8, 9, 10, 101, 102}));
  EXPECT_TRUE(record.loss_mask.empty());
  RecordSize size;
  ASSERT_FALSE(reader->measure(1, {}, size).value().has_value());
  EXPECT_EQ(size.tokens, 10U);
  EXPECT_EQ(size.valid_labels, 9U);
  ASSERT_FALSE(reader->measure(2, {}, size).value().has_value()) << "an empty document";
  EXPECT_EQ(size.tokens, 3U);
}

void expect_bad(ShardReader& reader, std::uint64_t number, BadRecordReason reason,
                const std::string& message) {
  Record record;
  const auto bad = read_record(reader, number, record);
  ASSERT_TRUE(bad.is_ok()) << bad.status().to_string();
  ASSERT_TRUE(bad->has_value()) << message;
  EXPECT_EQ((*bad)->reason, reason);
  EXPECT_EQ((*bad)->message, message);
  EXPECT_TRUE(record.ids.empty());
}

TEST(Megatron, AnIdOutsideOfTheVocabularyIsABadRecord) {
  const auto tokenizer = ids_below(10);
  const auto reader = open_pair(named(pair_of("megatron_i32")), *tokenizer).value();
  expect_bad(*reader, 1, BadRecordReason::kTokenId,
             "a.bin: record 1 at offset 12: token 6: id 10 is outside of the vocabulary of 10 ids");
  Record record;
  EXPECT_FALSE(read_record(*reader, 0, record).value().has_value()) << "the others are good";
  RecordSize size;
  EXPECT_FALSE(reader->measure(1, {}, size).value().has_value()) << "the data were not read";
}

TEST(Megatron, ANegativeIdIsABadRecord) {
  for (const std::string type : {"i8", "i16", "i32", "i64"}) {
    std::vector<Bytes> pair = pair_of("megatron_" + type);
    const std::size_t width = pair[kData].size() / 13;
    for (std::size_t i = 0; i < width; ++i) pair[kData][width + i] = std::byte{0xff};
    const auto reader = open_pair(named(pair), wide_ids()).value();
    expect_bad(*reader, 0, BadRecordReason::kTokenId,
               "a.bin: record 0 at offset 0: token 1: id -1 is outside of the vocabulary of 65536 "
               "ids");
  }
}

TEST(Megatron, ALargeRecordIsABadOne) {
  const auto reader =
      open_pair(named(pair_of("megatron_i16")), wide_ids(), {.max_record_bytes = 13}).value();
  expect_bad(*reader, 1, BadRecordReason::kTooLarge,
             "a.bin: record 1 at offset 6: 14 bytes; max_record_bytes is 13");
  for (const std::uint64_t limit : {std::uint64_t{0}, kMaxRecordBytes + 1}) {
    EXPECT_TRUE(open_pair(named(pair_of("megatron_i16")), wide_ids(), {.max_record_bytes = limit})
                    .is(ErrorKind::kInvalid));
  }
}

TEST(Megatron, WhatIsNoTextIsABadRecord) {
  std::vector<Bytes> pair = pair_of("megatron_modes");
  pair[kIndex][pair[kIndex].size() - 5] = std::byte{1};  // Of sequence 2, in document 1.
  const auto reader = open_pair(named(pair), wide_ids()).value();
  expect_bad(*reader, 1, BadRecordReason::kNotText,
             "a.bin: record 1 at offset 12: a sequence in it has mode 1; only text, mode 0, can be "
             "read");
}

TEST(Megatron, ALongDocumentIsReadPieceByPiece) {
  constexpr std::uint32_t kLongTokens = 300'000;
  std::vector<Bytes> pair = pair_of("megatron_wide");
  pair[kData].assign(std::size_t{kLongTokens} * 2, std::byte{0});
  store_le(std::uint16_t{17}, &pair[kData][std::size_t{kLongTokens - 1} * 2]);
  store_le(kLongTokens, &pair[kIndex][34]);
  const auto reader = open_pair(named(pair), wide_ids()).value();
  Record record;
  ASSERT_FALSE(read_record(*reader, 0, record).value().has_value());
  ASSERT_EQ(record.ids.size(), kLongTokens);
  EXPECT_EQ(record.ids.back(), 17U);
  store_le(std::uint16_t{0xffff}, &pair[kData][std::size_t{kLongTokens - 1} * 2]);
  const auto narrow = ids_below(65'535);
  expect_bad(*open_pair(named(pair), *narrow).value(), 0, BadRecordReason::kTokenId,
             "a.bin: record 0 at offset 0: token 299999: id 65535 is outside of the vocabulary of "
             "65535 ids");
}

struct ReadCounts {
  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;
};

class CountingReader final : public ByteReader {
 public:
  CountingReader(std::unique_ptr<ByteReader> file, ReadCounts& counts)
      : file_(std::move(file)), counts_(counts) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    ++counts_.reads;
    counts_.bytes += out.size();
    return file_->read_at(offset, out, call);
  }

 private:
  std::unique_ptr<ByteReader> file_;
  ReadCounts& counts_;
};

/// Thousands of files are opened when a run starts.
TEST(Megatron, OpeningReadsTheSameOfAnyIndex) {
  ReadCounts counts;
  for (const std::string name : {"wide", "i32"}) {
    ShardFiles files = named(pair_of("megatron_" + name));
    for (auto& file : files) file = std::make_unique<CountingReader>(std::move(file), counts);
    const auto reader = open_pair(std::move(files), wide_ids()).value();
    EXPECT_EQ(std::exchange(counts, {}).bytes, 34U + 2 * 8 + 2 * 8 + 4) << name;
    Record record;
    ASSERT_FALSE(read_record(*reader, 0, record).value().has_value());
    EXPECT_LT(std::exchange(counts, {}).bytes, 100U) << "and reading no more than it needs";
  }
}

/// A pair of documents of one sequence each, of 0 to 2 ids.
std::vector<Bytes> small_documents(std::uint64_t count) {
  const auto append = [](Bytes& out, auto value) {
    out.resize(out.size() + sizeof value);
    store_le(value, &out[out.size() - sizeof value]);
  };
  const Bytes head = pair_of("megatron_wide")[kIndex];
  std::vector<Bytes> pair(2);
  Bytes& index = pair[kIndex];
  index.assign(head.begin(), head.begin() + 18);  // Up to the counts.
  append(index, count);
  append(index, count + 1);
  std::uint64_t end = 0;
  Bytes pointers;
  for (std::uint64_t i = 0; i < count; ++i) {
    append(index, static_cast<std::uint32_t>(i % 3));
    append(pointers, end);
    end += i % 3 * 2;
  }
  index.insert(index.end(), pointers.begin(), pointers.end());
  for (std::uint64_t i = 0; i <= count; ++i) append(index, i);
  pair[kData].resize(end);
  return pair;
}

/// Making a sidecar index asks for all records, one after another.
TEST(Megatron, RecordsInOrderAreMeasuredThroughBuffers) {
  constexpr std::uint64_t kDocuments = 30'000;
  ReadCounts counts;
  ShardFiles files = named(small_documents(kDocuments));
  for (auto& file : files) file = std::make_unique<CountingReader>(std::move(file), counts);
  const auto reader = open_pair(std::move(files), wide_ids()).value();
  counts = {};
  RecordSize size;
  for (std::uint64_t record = 0; record < kDocuments; ++record) {
    ASSERT_FALSE(reader->measure(record, {}, size).value().has_value());
    ASSERT_EQ(size.tokens, record % 3) << record;
    ASSERT_EQ(size.place.offset_bytes, (record / 3 * 3 + (record % 3 == 2 ? 1 : 0)) * 2) << record;
  }
  EXPECT_LT(counts.reads, 40U) << "of 64 KiB each, but for the first few";
  for (const std::uint64_t record : {7U, 29'999U, 100U, 101U, 102U, 50U}) {
    ASSERT_FALSE(reader->measure(record, {}, size).value().has_value());
    EXPECT_EQ(size.tokens, record % 3) << record;
  }
}

TEST(Megatron, AFaultAmongRecordsInOrderIsTheirsAlone) {
  std::vector<Bytes> pair = small_documents(9);
  store_le(std::uint32_t{5}, &pair[kIndex][34 + 4 * 4]);  // Of document 4.
  const auto reader = open_pair(named(pair), wide_ids()).value();
  RecordSize size;
  for (std::uint64_t record = 0; record < 9; ++record) {
    const auto bad = reader->measure(record, {}, size);
    EXPECT_EQ(bad.is_ok(), record != 4) << record << ": " << bad.status().to_string();
  }
}

TEST(Megatron, TwoFilesOfTwoDataSetsAreNamed) {
  const std::vector<Bytes> mixed = {fixture_bytes("megatron_i32.bin"),
                                    fixture_bytes("megatron_u16.idx")};
  EXPECT_EQ(
      open_pair(named(mixed), wide_ids()).status().message(),
      "a.bin: offset 52: the file ends here; the sequences in a.idx end at 26: one of the two "
      "was cut, or they are of two data sets");
}

TEST(Megatron, EitherPathNamesBoth) {
  for (const std::string path : {"data/x.y.bin", "data/x.y.idx"}) {
    const MegatronPaths paths = megatron_paths(path).value();
    EXPECT_EQ(paths.data, "data/x.y.bin");
    EXPECT_EQ(paths.index, "data/x.y.idx");
  }
  EXPECT_TRUE(megatron_paths("data/x.npy").is(ErrorKind::kInvalid));
}

}  // namespace
}  // namespace batchloom::sources
