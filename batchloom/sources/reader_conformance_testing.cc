// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/reader_conformance_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <stop_token>
#include <utility>

#include "batchloom/base/random.h"

namespace batchloom::sources {
namespace {

ShardFiles in_memory(const std::vector<Bytes>& files) {
  ShardFiles readers;
  for (std::size_t i = 0; i < files.size(); ++i) {
    readers.push_back(read_bytes(fmt::format("file-{}", i), files[i]));
  }
  return readers;
}

/// Storage that fails once, at the read whose number counts down to 0.
class FailingReader final : public ByteReader {
 public:
  FailingReader(std::unique_ptr<ByteReader> file, int& reads_left)
      : file_(std::move(file)), reads_left_(reads_left) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    if (reads_left_-- == 0) {
      std::ranges::fill(out, std::byte{0x5a});
      return Status::unavailable("the disk is slow today");
    }
    return file_->read_at(offset, out, call);
  }

 private:
  std::unique_ptr<ByteReader> file_;
  int& reads_left_;
};

/// A kind that faults.h names, with the name of the shard's file.
void expect_refusal(const Status& status) {
  EXPECT_EQ(status.kind(), ErrorKind::kCorruption) << status.to_string();
  EXPECT_TRUE(status.message().find("file-") != std::string::npos) << status.message();
}

void expect_named(const BadRecord& bad, std::uint64_t number, const Record& left) {
  EXPECT_TRUE(bad.message.find(fmt::format("record {} at offset", number)) != std::string::npos)
      << bad.message;
  EXPECT_TRUE(left.ids.empty() && left.loss_mask.empty()) << bad.message;
}

void expect_record(ShardReader& reader, std::uint64_t number, const Record& expected) {
  Record record;
  const auto bad = read_record(reader, number, record);
  ASSERT_TRUE(bad.is_ok()) << bad.status().to_string();
  ASSERT_FALSE(bad->has_value()) << bad->value().message;
  EXPECT_EQ(record, expected) << "record " << number;
}

std::vector<std::uint64_t> numbers(std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

}  // namespace

void PrintTo(const Record& record, std::ostream* out) {
  *out << fmt::format("{} {}: {} | {}", record.place.offset_bytes, record.place.size_bytes,
                      fmt::join(record.ids, " "), fmt::join(record.loss_mask, " "));
}

std::string format_name(const testing::TestParamInfo<ReaderFormat>& format) {
  return format.param.name;
}

Bytes fixture_bytes(const std::string& name) {
  std::ifstream file(std::filesystem::path(BATCHLOOM_FIXTURES) / "shards" / name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return to_bytes(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::vector<Record> fixture_records(const std::string& name) {
  const Bytes bytes = fixture_bytes(name + ".records");
  std::istringstream lines{std::string(as_text(bytes))};
  std::vector<Record> records;
  for (std::string line; std::getline(lines, line);) {
    Record record;
    std::istringstream words(line);
    char colon = 0;
    words >> record.place.offset_bytes >> record.place.size_bytes >> colon;
    EXPECT_EQ(colon, ':') << line;
    bool in_mask = false;
    for (std::string word; words >> word;) {
      if (word == "|") {
        in_mask = true;
      } else if (in_mask) {
        record.loss_mask.push_back(static_cast<std::uint8_t>(std::stoul(word)));
      } else {
        record.ids.push_back(static_cast<TokenId>(std::stoul(word)));
      }
    }
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::optional<BadRecord>> read_record(ShardReader& reader, std::uint64_t number,
                                             Record& out) {
  return reader.read(number, {}, out);
}

Result<std::unique_ptr<ShardReader>> ReaderConformance::open(
    const std::vector<Bytes>& files) const {
  return GetParam().open(in_memory(files));
}

std::unique_ptr<ShardReader> ReaderConformance::open() const {
  return open(GetParam().files).value();
}

void ReaderConformance::expect_equal_or_named(const std::vector<Bytes>& files, bool same) const {
  const std::vector<Record>& expected = GetParam().records;
  const auto reader = open(files);
  if (!reader.is_ok()) return expect_refusal(reader.status());
  Record record;
  for (std::uint64_t i = 0; i < (*reader)->records(); ++i) {
    const auto bad = read_record(**reader, i, record);
    if (!bad.is_ok()) {
      expect_refusal(bad.status());
    } else if (bad->has_value()) {
      expect_named(**bad, i, record);
    } else if (same) {
      ASSERT_LT(i, expected.size());
      EXPECT_EQ(record, expected[i]);
    }
  }
}

TEST_P(ReaderConformance, EveryRecordIsReadAndMeasured) {
  const auto reader = open();
  const std::vector<Record>& records = GetParam().records;
  ASSERT_GT(records.size(), GetParam().is_one_record ? 0U : 2U) << "the suite needs some records";
  ASSERT_EQ(reader->records(), records.size());
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    expect_record(*reader, i, records[i]);
    RecordSize size;
    ASSERT_FALSE(reader->measure(i, {}, size).value().has_value());
    EXPECT_EQ(size, size_of(records[i])) << "record " << i;
  }
}

TEST_P(ReaderConformance, AnyOrderGivesTheSame) {
  const auto reader = open();
  const std::vector<Record>& records = GetParam().records;
  Record reused;
  Random random(29);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t number = random.below(records.size());
    ASSERT_FALSE(read_record(*reader, number, reused).value().has_value());
    ASSERT_EQ(reused, records[number]) << "record " << number << " in call " << i;
  }
}

TEST_P(ReaderConformance, ReadersDoNotDisturbEachOther) {
  const std::vector<Record>& records = GetParam().records;
  const std::unique_ptr<ShardReader> readers[] = {open(), open(), open()};
  for (const std::uint64_t i : numbers(records.size())) {
    expect_record(*readers[0], i, records[i]);
    expect_record(*readers[1], records.size() - 1 - i, records[records.size() - 1 - i]);
    expect_record(*readers[2], i / 2, records[i / 2]);
  }
}

/// The number of the next record is all that a cursor needs to hold.
TEST_P(ReaderConformance, AnotherReaderGoesOnAtAnyRecord) {
  const std::vector<Record>& records = GetParam().records;
  for (const std::uint64_t next : numbers(records.size())) {
    const auto first = open();
    for (std::uint64_t i = 0; i < next; ++i) expect_record(*first, i, records[i]);
    const auto second = open();
    for (std::uint64_t i = next; i < records.size(); ++i) expect_record(*second, i, records[i]);
  }
}

TEST_P(ReaderConformance, AnEmptyShardHasNoRecords) {
  if (GetParam().is_one_record) GTEST_SKIP() << "a shard is one record";
  const auto reader = open(GetParam().empty_files);
  ASSERT_TRUE(reader.is_ok()) << reader.status().to_string();
  EXPECT_EQ((*reader)->records(), 0U);
  Record record;
  EXPECT_TRUE(read_record(**reader, 0, record).is(ErrorKind::kInvalid));
}

TEST_P(ReaderConformance, ARecordThatIsNotThereIsAWrongCall) {
  const auto reader = open();
  Record record;
  RecordSize size;
  for (const std::uint64_t number : {reader->records(), ~std::uint64_t{0}}) {
    const auto bad = read_record(*reader, number, record);
    ASSERT_TRUE(bad.is(ErrorKind::kInvalid));
    EXPECT_TRUE(bad.status().message().find(fmt::format("record {} ", number)) !=
                std::string::npos);
    EXPECT_TRUE(reader->measure(number, {}, size).is(ErrorKind::kInvalid));
  }
}

TEST_P(ReaderConformance, AStoppedCallEndsAndCanBeMadeAgain) {
  const auto reader = open();
  std::stop_source stop;
  stop.request_stop();
  Record record;
  const CallOptions stopped{.deadline = kNever, .stop = stop.get_token()};
  EXPECT_TRUE(reader->read(0, stopped, record).is(ErrorKind::kCancelled));
  expect_record(*reader, 0, GetParam().records[0]);
}

/// Storage that fails is neither a bad record nor a faulty shard, and a second try finds the same.
TEST_P(ReaderConformance, AFailureOfTheStorageIsToldFromAFault) {
  const std::vector<Record>& records = GetParam().records;
  for (const std::uint64_t i : numbers(records.size())) {
    for (int fails_at = 0;; ++fails_at) {
      int reads_left = 1 << 30;
      ShardFiles files;
      for (auto& file : in_memory(GetParam().files)) {
        files.push_back(std::make_unique<FailingReader>(std::move(file), reads_left));
      }
      const auto reader = GetParam().open(std::move(files)).value();
      reads_left = fails_at;
      Record record;
      const auto bad = read_record(*reader, i, record);
      if (bad.is_ok()) break;
      EXPECT_EQ(bad.status().kind(), ErrorKind::kUnavailable);
      expect_record(*reader, i, records[i]);
      ASSERT_LT(fails_at, 100) << "record " << i << " is never read";
    }
  }
}

TEST_P(ReaderConformance, AFileThatIsCutGivesTheSameRecordsOrIsNamed) {
  for (std::size_t file = 0; file < GetParam().files.size(); ++file) {
    for (std::size_t size = 0; size < GetParam().files[file].size(); ++size) {
      SCOPED_TRACE(fmt::format("file {} cut at {}", file, size));
      std::vector<Bytes> files = GetParam().files;
      files[file].resize(size);
      expect_equal_or_named(files, !GetParam().is_one_record);
    }
  }
}

TEST_P(ReaderConformance, AChangedBitGivesTheSameRecordsOrIsNamed) {
  for (std::size_t file = 0; file < GetParam().files.size(); ++file) {
    for (std::size_t bit = 0; bit < GetParam().files[file].size() * 8; ++bit) {
      SCOPED_TRACE(fmt::format("file {} bit {} of byte {}", file, bit % 8, bit / 8));
      std::vector<Bytes> files = GetParam().files;
      files[file][bit / 8] ^= std::byte(1U << (bit % 8));
      expect_equal_or_named(files, !GetParam().may_change_records(file, bit / 8));
    }
  }
}

}  // namespace batchloom::sources
