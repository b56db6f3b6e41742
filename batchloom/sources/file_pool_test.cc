// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/file_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "batchloom/base/random.h"
#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/local_store_testing.h"

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;
using objstore::says;

/// Descriptors of this process that lead to files below `folder`.
std::size_t descriptors_below(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += fs::read_symlink(entry, gone).string().starts_with(folder) ? 1 : 0;
  }
  return count;
}

class FilePoolTest : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  std::string numbered(std::size_t number) const {
    return write(std::to_string(number), "file " + std::to_string(number));
  }

  static Result<std::string> text_of(ByteReader& file, std::uint64_t offset = 0) {
    std::string text(file.size_bytes() - offset, '?');
    BL_RETURN_IF_ERROR(file.read_at(offset, std::as_writable_bytes(std::span(text)), {}));
    return text;
  }

  FilePool pool(std::size_t max_open) { return FilePool(*runtime_, {.max_open = max_open}); }

  const std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::ScratchFolder scratch_;
  const std::string folder_ = fs::canonical(scratch_.path());
};

TEST_F(FilePoolTest, ReadsByPosition) {
  FilePool files = pool(4);
  const auto file = files.open(write("a", "hello world")).value();
  EXPECT_EQ(file->name(), folder_ + "/a");
  EXPECT_EQ(file->size_bytes(), 11U);
  EXPECT_EQ(text_of(*file).value(), "hello world");
  EXPECT_EQ(text_of(*file, 6).value(), "world");
  EXPECT_EQ(text_of(*file, 11).value(), "");
}

TEST_F(FilePoolTest, ReadsSeveralStretchesAtOnce) {
  FilePool files = pool(4);
  const auto file = files.open(write("a", "hello world")).value();
  std::string text(7, '?');
  const std::span<std::byte> out = std::as_writable_bytes(std::span(text));
  const std::vector<ReadStretch> stretches = {
      {6, out.subspan(0, 3)}, {11, out.subspan(3, 0)}, {0, out.subspan(3, 4)}};
  ASSERT_TRUE(file->read_all(stretches, {}).is_ok());
  EXPECT_EQ(text, "worhell");
  ASSERT_TRUE(file->read_all({}, {}).is_ok());

  const std::vector<ReadStretch> beyond = {{0, out.first(2)}, {9, out.first(3)}};
  EXPECT_TRUE(says(file->read_all(beyond, {}), "3 bytes were expected at offset 9"));
  std::ofstream(std::string(file->name()), std::ios::app) << "!";
  EXPECT_TRUE(file->read_all(stretches, {}).is(ErrorKind::kConflict));
}

TEST_F(FilePoolTest, OpensNothingBeforeTheFirstReadAndClosesWithTheReader) {
  FilePool files = pool(4);
  auto file = files.open(write("a", "hello")).value();
  EXPECT_EQ(descriptors_below(folder_), 0U);
  ASSERT_TRUE(text_of(*file).is_ok());
  EXPECT_EQ(descriptors_below(folder_), 1U);
  file.reset();
  EXPECT_EQ(descriptors_below(folder_), 0U);
  EXPECT_EQ(files.open_files(), 0U);
}

TEST_F(FilePoolTest, RefusesARangeBeyondTheEnd) {
  FilePool files = pool(4);
  const auto file = files.open(write("a", "hello")).value();
  Bytes out(3);
  const Status beyond = file->read_at(3, out, {});
  EXPECT_TRUE(beyond.is(ErrorKind::kCorruption));
  EXPECT_TRUE(says(beyond, "/a: offset 5: the file ends here; 3 bytes were expected at offset 3"));
  EXPECT_TRUE(file->read_at(UINT64_MAX, out, {}).is(ErrorKind::kCorruption));
}

TEST_F(FilePoolTest, ClosesTheOneThatWasUsedLeastRecently) {
  FilePool files = pool(2);
  std::vector<std::unique_ptr<ByteReader>> readers;
  for (std::size_t i = 0; i < 3; ++i) readers.push_back(files.open(numbered(i)).value());
  ASSERT_TRUE(text_of(*readers[0]).is_ok());
  ASSERT_TRUE(text_of(*readers[1]).is_ok());
  ASSERT_TRUE(text_of(*readers[0]).is_ok());
  ASSERT_TRUE(text_of(*readers[2]).is_ok());  // In place of 1.
  // What is open can be read though its name is gone; what is closed cannot.
  for (std::size_t i = 0; i < 3; ++i) fs::remove(folder_ + "/" + std::to_string(i));
  EXPECT_TRUE(text_of(*readers[0]).is_ok());
  EXPECT_TRUE(text_of(*readers[2]).is_ok());
  EXPECT_TRUE(text_of(*readers[1]).is(ErrorKind::kNotFound));
}

TEST_F(FilePoolTest, FiveThousandReadersNeverExceedTheLimit) {
  constexpr std::size_t kReaders = 5'000;
  constexpr std::size_t kFiles = 50;  // To a pool, two readers of a file are two files.
  FilePool files = pool(16);
  std::vector<std::unique_ptr<ByteReader>> readers;
  for (std::size_t i = 0; i < kFiles; ++i) readers.push_back(files.open(numbered(i)).value());
  for (std::size_t i = kFiles; i < kReaders; ++i) {
    readers.push_back(files.open(std::string(readers[i % kFiles]->name())).value());
  }
  Random random(17);
  for (std::size_t i = 0; i < 2 * kReaders; ++i) {
    const std::size_t number = i < kReaders ? i : random.below(kReaders);
    ASSERT_EQ(text_of(*readers[number]).value(), "file " + std::to_string(number % kFiles));
    ASSERT_LE(files.open_files(), 16U);
    if (i % 512 == 0) {
      ASSERT_LE(descriptors_below(folder_), 16U);
    }
  }
  EXPECT_EQ(descriptors_below(folder_), 16U);
}

/// The process's limit of open files, while it lives.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t limit) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit lower{limit, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(FilePoolTest, LeavesHalfOfTheProcesssLimitToOthers) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < 80; ++i) paths.push_back(numbered(i));
  const OpenFilesLimit limit(60);
  FilePool files = pool(256);
  std::vector<std::unique_ptr<ByteReader>> readers;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    readers.push_back(files.open(paths[i]).value());
    const Result<std::string> text = text_of(*readers.back());
    ASSERT_TRUE(text.is_ok()) << text.status().to_string();
    EXPECT_EQ(*text, "file " + std::to_string(i));
  }
  EXPECT_EQ(files.open_files(), 30U);
}

TEST_F(FilePoolTest, ThreadsShareFewerFilesThanThereAreThreads) {
  constexpr std::size_t kFiles = 12;
  FilePool files = pool(3);
  std::vector<std::unique_ptr<ByteReader>> readers;
  for (std::size_t i = 0; i < kFiles; ++i) readers.push_back(files.open(numbered(i)).value());
  std::atomic<std::size_t> right = 0;
  {
    std::vector<std::unique_ptr<Task>> tasks;
    for (std::uint64_t thread = 0; thread < 8; ++thread) {
      tasks.push_back(runtime_->spawn("reader", [&, thread](const std::stop_token&) {
        Random random(thread);
        for (int i = 0; i < 500; ++i) {
          const std::size_t number = random.below(kFiles);
          const auto text = text_of(*readers[number]);
          if (text.is_ok() && *text == "file " + std::to_string(number)) ++right;
          EXPECT_LE(files.open_files(), 3U);
        }
      }));
    }
  }
  EXPECT_EQ(right, 8U * 500U);
  EXPECT_LE(descriptors_below(folder_), 3U);
}

TEST_F(FilePoolTest, AReplacedFileIsANamedErrorWhenItIsOpenedAgain) {
  FilePool files = pool(1);
  const auto first = files.open(write("docs", "hello")).value();
  const auto second = files.open(write("b", "b")).value();
  ASSERT_TRUE(text_of(*first).is_ok());
  ASSERT_TRUE(text_of(*second).is_ok());  // Closes the first.
  const auto time = fs::last_write_time(first->name());
  write("new", "HELLO");
  fs::last_write_time(folder_ + "/new", time);
  fs::rename(folder_ + "/new", first->name());
  const auto replaced = text_of(*first);
  EXPECT_TRUE(replaced.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(replaced.status(), "/docs was replaced by another file"));
  EXPECT_EQ(files.open_files(), 0U);
  EXPECT_EQ(descriptors_below(folder_), 0U);
}

TEST_F(FilePoolTest, AFileThatChangesWhileItIsOpenIsANamedError) {
  FilePool files = pool(1);
  const auto file = files.open(write("docs", "hello")).value();
  ASSERT_TRUE(text_of(*file).is_ok());
  std::ofstream(std::string(file->name()), std::ios::app) << "!";
  EXPECT_TRUE(says(text_of(*file).status(), "/docs grew from 5 to 6 bytes during this run"));
  fs::resize_file(file->name(), 2);
  const auto shrunk = text_of(*file);
  EXPECT_TRUE(shrunk.is(ErrorKind::kConflict));
  EXPECT_TRUE(says(shrunk.status(), "/docs shrank from 5 to 2 bytes"));
}

TEST_F(FilePoolTest, WhatIsNoReadableFileIsATypedErrorWithItsPath) {
  FilePool files = pool(1);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(files.open(pipe).is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(files.open(pipe).status(), pipe));
  EXPECT_TRUE(files.open(folder_).is(ErrorKind::kInvalid));
  EXPECT_TRUE(files.open(folder_ + "/none").is(ErrorKind::kNotFound));
  // A file that becomes a pipe is found out, not waited for.
  const auto file = files.open(write("a", "hello")).value();
  fs::rename(pipe, file->name());
  EXPECT_TRUE(text_of(*file).is(ErrorKind::kInvalid));
}

TEST_F(FilePoolTest, AMissingPermissionIsFoundByTheFirstRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  FilePool files = pool(1);
  const std::string path = write("a", "hello");
  fs::permissions(path, fs::perms::none);
  const auto file = files.open(path).value();
  const auto text = text_of(*file);
  EXPECT_TRUE(text.is(ErrorKind::kInvalid));
  EXPECT_TRUE(says(text.status(), "open " + path));
}

TEST_F(FilePoolTest, AStopEndsARead) {
  FilePool files = pool(1);
  const auto file = files.open(write("a", "hello")).value();
  std::stop_source stop;
  stop.request_stop();
  Bytes out(1);
  EXPECT_TRUE(file->read_at(0, out, {.stop = stop.get_token()}).is(ErrorKind::kCancelled));
  EXPECT_TRUE(text_of(*file).is_ok());
}

}  // namespace
}  // namespace batchloom::sources
