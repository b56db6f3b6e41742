// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/sources/reader_conformance_testing.h"

namespace batchloom::sources {
namespace {

using std::string_literals::operator""s;

std::unique_ptr<ByteReader> jsonl_file(const std::string& text) {
  return read_bytes("a.jsonl", to_bytes(text));
}

/// The lines that a scan of `text` finds.
Result<std::vector<std::string>> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  const auto file = jsonl_file(text);
  BL_RETURN_IF_ERROR(scan_jsonl(*stream_of(*file), {}, [&](const RecordPlace& place) {
    lines.push_back(text.substr(place.offset_bytes, place.size_bytes));
    return Status::ok();
  }));
  return lines;
}

using Lines = std::vector<std::string>;

TEST(JsonlScan, LinesAreRecords) {
  const std::pair<std::string, Lines> cases[] = {
      {"", {}},
      {"\n\n", {}},
      {"\xef\xbb\xbf", {}},
      {"\xef\xbb\xbf{}", {"{}"}},
      {"\xef\xbb\xbf\n{}\n", {"{}"}},
      {"{}", {"{}"}},
      {"{}\n", {"{}"}},
      {"{}\r\n", {"{}"}},
      {"{}\r", {"{}"}},
      {"a\nb\r\nc", {"a", "b", "c"}},
      {" \n\t\r\n \r \na", {"a"}},
      {" a\r\r\n", {" a\r"}},
      {"a\0b\n\0\n"s, {"a\0b"s, "\0"s}},
      {"\xff\n", {"\xff"}},
  };
  for (const auto& [text, lines] : cases) EXPECT_EQ(lines_of(text).value(), lines) << text;
}

TEST(JsonlScan, ForeignFilesAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"\xff\xfe{\0}\0"s, "UTF-16"}, {"\xfe\xff\0{\0}"s, "UTF-16"}, {"{\0\"\0"s, "UTF-16"},
      {"\0{\0\""s, "UTF-16"},        {"\xff\xfe\0\0"s, "UTF-32"},   {"\0\0\xfe\xff"s, "UTF-32"},
      {"{\0\0\0"s, "UTF-32"},        {"\0\0\0{"s, "UTF-32"},        {"\x1f\x8b\x08", "gzip"},
      {"\x28\xb5\x2f\xfd", "zstd"},
  };
  for (const auto& [text, what] : cases) {
    const Status status = lines_of(text).status();
    ASSERT_TRUE(status.is(ErrorKind::kCorruption)) << what;
    EXPECT_TRUE(status.message().starts_with("a.jsonl: offset 0: the file is "))
        << status.message();
    EXPECT_TRUE(status.message().find(what) != std::string::npos) << status.message();
  }
  for (const std::string& text : {"\0"s, "\0\0"s, "\0\0\0\0"s, "{\0"s, "{}\0\0"s}) {
    EXPECT_TRUE(lines_of(text).is_ok()) << "bytes of 0 say nothing of an encoding";
  }
}

/// What the format's description says, without the chunks.
Lines expected_lines(const std::string& text) {
  Lines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      if (line.ends_with('\r')) line.pop_back();
      lines.push_back(line);
    }
    begin = end + 1;
  }
  return lines;
}

RC_GTEST_PROP(JsonlScan, LinesAreToldApartWhereverTheyLie, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('\n', '\r', ' ', 'x', '\t'));
  RC_ASSERT(lines_of(text).value() == expected_lines(text));
}

TEST(JsonlScan, LinesCrossTheBuffersEnd) {
  constexpr std::size_t kBuffer = 256 << 10;
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    for (std::size_t before = kBuffer - 3; before <= kBuffer + 1; ++before) {
      for (const char filled : {'x', ' '}) {
        const std::string text = std::string(before, filled) + end + "next" + end + " \n" + "last";
        EXPECT_EQ(lines_of(text).value(), expected_lines(text)) << before;
      }
    }
  }
}

/// Reads nothing but says how many bytes were asked for at once.
class LongLine final : public ByteReader {
 public:
  explicit LongLine(std::uint64_t size_bytes) : size_bytes_(size_bytes) {}

  std::string_view name() const override { return "long.jsonl"; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  Status read_at(std::uint64_t, std::span<std::byte> out, const CallOptions&) override {
    most_bytes_ = std::max(most_bytes_, out.size());
    std::ranges::fill(out, std::byte{'x'});
    return Status::ok();
  }
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  std::uint64_t size_bytes_;
  std::size_t most_bytes_ = 0;
};

TEST(JsonlScan, ALineOfAnyLengthNeedsTheSameBuffer) {
  LongLine file(std::uint64_t{16} << 20);
  std::vector<RecordPlace> places;
  ASSERT_TRUE(scan_jsonl(*stream_of(file), {}, [&](const RecordPlace& place) {
                places.push_back(place);
                return Status::ok();
              }).is_ok());
  EXPECT_EQ(places, (std::vector<RecordPlace>{{0, file.size_bytes()}}));
  EXPECT_LE(file.most_bytes(), std::size_t{256} << 10);
}

TEST(JsonlScan, AnErrorOfTheCallerAndAStopEndIt) {
  const auto file = jsonl_file("1\n2\n3\n");
  int calls = 0;
  const Status status = scan_jsonl(*stream_of(*file), {}, [&](const RecordPlace&) {
    return ++calls == 2 ? Status::exhausted("enough") : Status::ok();
  });
  EXPECT_TRUE(status.is(ErrorKind::kExhausted));
  EXPECT_EQ(calls, 2);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(scan_jsonl(*stream_of(*file), {.deadline = kNever, .stop = stop.get_token()},
                         [](const auto&) { return Status::ok(); })
                  .is(ErrorKind::kCancelled));
}

TEST(JsonlScan, OffsetsInMemoryAreBounded) {
  const auto file = jsonl_file("1\n22\n3\n");
  const auto offsets = scan_jsonl_offsets(*stream_of(*file), 3 * sizeof(RecordPlace), {}).value();
  ASSERT_EQ(offsets->count(), 3U);
  EXPECT_EQ(offsets->place(1), (RecordPlace{2, 2}));
  const Status status =
      scan_jsonl_offsets(*stream_of(*file), 3 * sizeof(RecordPlace) - 1, {}).status();
  EXPECT_TRUE(status.is(ErrorKind::kExhausted));
  EXPECT_EQ(status.message(),
            "a.jsonl: the offsets of more than 2 records do not fit into 47 bytes; index the file");
}

}  // namespace
}  // namespace batchloom::sources
