// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/decoded_file.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <zstd.h>

#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/random.h"

namespace batchloom::sources {
namespace {

using testing::HasSubstr;

/// Content that does not compress, so that offsets in the file go with those in the content.
Bytes noise(std::size_t size) {
  Bytes bytes(size);
  Random random(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

Bytes zstd_of(ByteSpan content, std::size_t frame_bytes) {
  Bytes file;
  for (std::size_t at = 0; at < content.size(); at += frame_bytes) {
    const ByteSpan part = content.subspan(at, std::min(frame_bytes, content.size() - at));
    const std::size_t before = file.size();
    file.resize(before + ZSTD_compressBound(part.size()));
    const std::size_t size =
        ZSTD_compress(file.data() + before, file.size() - before, part.data(), part.size(), 1);
    EXPECT_EQ(ZSTD_isError(size), 0U);
    file.resize(before + size);
  }
  return file;
}

/// Counts what is read of it, and fails when it is told to.
class CountingFile final : public ByteReader {
 public:
  struct Counts {
    std::uint64_t bytes = 0;
    bool fails = false;
  };

  CountingFile(Bytes bytes, Counts& counts)
      : file_(read_bytes("a.zst", std::move(bytes))), counts_(counts) {}

  std::string_view name() const override { return file_->name(); }
  std::uint64_t size_bytes() const override { return file_->size_bytes(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    if (counts_.fails) return Status::unavailable("the disk is slow today");
    counts_.bytes += out.size();
    return file_->read_at(offset, out, call);
  }

 private:
  std::unique_ptr<ByteReader> file_;
  Counts& counts_;
};

ContentMap map_of(const Bytes& file) {
  const auto bytes = read_bytes("a.zst", file);
  const auto stream = DecodedStream::open(*bytes, Compression::kZstd).value();
  Bytes buffer(1 << 20);
  while (stream->read(buffer, {}).value() == buffer.size()) {
  }
  return {.compression = Compression::kZstd,
          .seek_points = stream->seek_points(),
          .content_bytes = stream->content_offset()};
}

Bytes read_range(ByteReader& file, std::uint64_t offset, std::size_t size) {
  Bytes out(size);
  const Status status = file.read_at(offset, out, {});
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  return out;
}

RC_GTEST_PROP(DecodedFile, AnyRangeInAnyOrderIsTheContent, ()) {
  const std::size_t size = *rc::gen::inRange<std::size_t>(1, 5 << 20);
  const std::size_t frame = *rc::gen::inRange<std::size_t>(100 << 10, 2 << 20);
  const Bytes content = noise(size);
  const Bytes file = zstd_of(content, frame);
  const auto decoded = open_decoded(read_bytes("a.zst", file), map_of(file)).value();
  RC_ASSERT(decoded->size_bytes() == size);
  const auto ranges = *rc::gen::container<std::vector<std::pair<std::size_t, std::size_t>>>(
      6, rc::gen::pair(rc::gen::inRange<std::size_t>(0, size),
                       rc::gen::inRange<std::size_t>(0, 300'000)));
  for (const auto& [offset, wanted] : ranges) {
    const std::size_t count = std::min(wanted, size - offset);
    const auto begin = content.begin() + static_cast<std::ptrdiff_t>(offset);
    RC_ASSERT(read_range(*decoded, offset, count) ==
              Bytes(begin, begin + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST(DecodedFile, SeekPointsAreAFewMiBApartHoweverSmallFramesAre) {
  const Bytes content = noise(5 << 20);
  const ContentMap small = map_of(zstd_of(content, 10'000));
  ASSERT_EQ(small.seek_points.size(), 5U);
  EXPECT_EQ(small.seek_points[0], (SeekPoint{0, 0}));
  EXPECT_EQ(small.seek_points[1].content_offset, 1'050'000U);
  EXPECT_EQ(map_of(zstd_of(content, 5 << 20)).seek_points.size(), 1U);
  EXPECT_EQ(small.content_bytes, content.size());
}

TEST(DecodedFile, GoingOnReadsWhatComesNextAndGoingElsewhereAFrame) {
  const Bytes content = noise(16 << 20);
  const Bytes file = zstd_of(content, 1 << 20);
  CountingFile::Counts counts;
  const auto decoded =
      open_decoded(std::make_unique<CountingFile>(file, counts), map_of(file)).value();
  for (std::uint64_t at = 0; at < content.size(); at += 4096) read_range(*decoded, at, 4096);
  EXPECT_LE(counts.bytes, file.size() + (64 << 10)) << "once, in order";
  counts.bytes = 0;
  read_range(*decoded, 3 << 20, 4096);
  EXPECT_LE(counts.bytes, 1U << 20);
  read_range(*decoded, 15 << 20, 4096);
  EXPECT_LE(counts.bytes, 2U << 20) << "forward, past frames nobody asked for";
}

TEST(DecodedFile, AfterAFailureOfTheStorageItReadsOn) {
  const Bytes content = noise(3 << 20);
  const Bytes file = zstd_of(content, 3 << 20);
  CountingFile::Counts counts;
  const auto decoded =
      open_decoded(std::make_unique<CountingFile>(file, counts), map_of(file)).value();
  read_range(*decoded, 0, 1'000'000);
  counts.fails = true;
  Bytes out(1'500'000);
  EXPECT_EQ(decoded->read_at(1'000'000, out, {}).kind(), ErrorKind::kUnavailable);
  counts.fails = false;
  EXPECT_EQ(read_range(*decoded, 1'000'000, 1'500'000),
            Bytes(content.begin() + 1'000'000, content.begin() + 2'500'000));
}

TEST(DecodedFile, WhatIsDamagedIsDamagedHoweverOftenItIsRead) {
  Bytes file = zstd_of(noise(300'000), 300'000);
  const ContentMap map = map_of(file);
  // The header of the second block: of a type that there is not (RFC 8878, 3.1.1.2.2).
  const std::size_t second_block = 4 + 1 + 4 + 3 + (128 << 10);
  file[second_block] |= std::byte{6};
  const auto decoded = open_decoded(read_bytes("a.zst", file), map).value();
  const Bytes first = read_range(*decoded, 0, 100'000);
  Bytes out(100'000);
  const Status status = decoded->read_at(first.size(), out, {});
  EXPECT_EQ(status.kind(), ErrorKind::kCorruption);
  EXPECT_EQ(decoded->read_at(first.size(), out, {}).to_string(), status.to_string());
  EXPECT_EQ(read_range(*decoded, 0, first.size()), first);
}

TEST(DecodedFile, AnotherFilesMapGivesItselfAway) {
  const Bytes longer = zstd_of(noise(200'000), 200'000);
  const Bytes shorter = zstd_of(noise(100'000), 100'000);
  const auto decoded = open_decoded(read_bytes("a.zst", shorter), map_of(longer)).value();
  Bytes out(150'000);
  const Status status = decoded->read_at(0, out, {});
  EXPECT_EQ(status.kind(), ErrorKind::kCorruption);
  EXPECT_EQ(status.message(),
            "a.zst: its content ends at 100000; 150000 bytes of it were expected");
  EXPECT_EQ(decoded->read_at(150'000, out, {}).message(),
            "a.zst: its content ends at 200000; 300000 bytes of it were expected");
}

TEST(DecodedFile, AWindowAboveItsBoundIsRefusedBeforeItIsTaken) {
  // A frame's header with a window of 2 GiB: RFC 8878, 3.1.1.1.2.
  const Bytes file = to_bytes(std::string_view("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", 9));
  const auto bytes = read_bytes("a.zst", file);
  const auto stream = DecodedStream::open(*bytes, Compression::kZstd).value();
  Bytes out(10);
  const Status status = stream->read(out, {}).status();
  EXPECT_EQ(status.kind(), ErrorKind::kCorruption);
  EXPECT_THAT(status.message(), HasSubstr("zstd: Frame requires too much memory"));
}

}  // namespace
}  // namespace batchloom::sources
