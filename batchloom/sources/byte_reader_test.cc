// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/byte_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>

#include "batchloom/base/bytes.h"

namespace batchloom::sources {
namespace {

std::string path_in_temp(const std::string& name) {
  return testing::TempDir() + "/byte_reader_" + name;
}

class ByteReaderTest : public testing::TestWithParam<bool> {
 protected:
  static std::unique_ptr<ByteReader> open(const std::string& content) {
    if (!GetParam()) return read_bytes(path_in_temp("a"), to_bytes(content));
    std::ofstream(path_in_temp("a"), std::ios::binary) << content;
    return open_file(path_in_temp("a")).value();
  }
};

INSTANTIATE_TEST_SUITE_P(Both, ByteReaderTest, testing::Values(false, true),
                         [](const auto& of) { return of.param ? "File" : "Memory"; });

TEST_P(ByteReaderTest, ReadsAnyRange) {
  const auto file = open("0123456789");
  EXPECT_EQ(file->size_bytes(), 10U);
  EXPECT_EQ(file->name(), path_in_temp("a"));
  std::array<std::byte, 4> out{};
  for (const std::uint64_t offset : {6U, 0U, 3U}) {
    ASSERT_TRUE(file->read_at(offset, out, {}).is_ok());
    EXPECT_EQ(as_text(out), std::string("0123456789").substr(offset, 4));
  }
  EXPECT_TRUE(file->read_at(10, {}, {}).is_ok()) << "nothing at the end";
}

TEST_P(ByteReaderTest, ReadingBeyondTheEndIsAFaultOfTheShard) {
  const auto file = open("0123456789");
  std::array<std::byte, 4> out{};
  for (const std::uint64_t offset :
       {std::uint64_t{7}, std::uint64_t{10}, std::uint64_t{11}, ~std::uint64_t{0}}) {
    EXPECT_TRUE(file->read_at(offset, out, {}).is(ErrorKind::kCorruption)) << offset;
  }
  EXPECT_EQ(
      file->read_at(7, out, {}).message(),
      path_in_temp("a") + ": offset 10: the file ends here; 4 bytes were expected at offset 7");
}

TEST_P(ByteReaderTest, AStopEndsIt) {
  const auto file = open("0123456789");
  std::stop_source stop;
  stop.request_stop();
  std::array<std::byte, 4> out{};
  EXPECT_TRUE(file->read_at(0, out, {.deadline = kNever, .stop = stop.get_token()})
                  .is(ErrorKind::kCancelled));
}

TEST(OpenFile, WhatIsNoPlainFileIsNamed) {
  EXPECT_TRUE(open_file(path_in_temp("nothing")).is(ErrorKind::kNotFound));
  const Status folder = open_file(testing::TempDir()).status();
  EXPECT_TRUE(folder.is(ErrorKind::kInvalid));
  EXPECT_EQ(folder.message(), testing::TempDir() + ": a folder, not a plain file");
  const std::string pipe = path_in_temp("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(open_file(pipe).is(ErrorKind::kInvalid)) << "nobody writes, and nobody waits";
  std::filesystem::remove(pipe);
}

TEST(OpenFile, ALinkIsFollowed) {
  std::ofstream(path_in_temp("target")) << "17";
  std::filesystem::remove(path_in_temp("link"));
  std::filesystem::create_symlink(path_in_temp("target"), path_in_temp("link"));
  EXPECT_EQ(open_file(path_in_temp("link")).value()->size_bytes(), 2U);
}

TEST(OpenFile, AFileThatShrinksMeanwhileIsNamed) {
  const std::string path = path_in_temp("shrinking");
  std::ofstream(path) << "0123456789";
  const auto file = open_file(path).value();
  std::filesystem::resize_file(path, 5);
  std::array<std::byte, 4> out{};
  EXPECT_TRUE(file->read_at(0, out, {}).is_ok());
  EXPECT_EQ(file->read_at(4, out, {}).message(),
            path + ": offset 5: the file ends here; it had 10 bytes when it was opened");
}

}  // namespace
}  // namespace batchloom::sources
