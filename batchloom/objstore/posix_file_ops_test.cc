// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/posix_file_ops.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "batchloom/objstore/local_store_testing.h"

namespace batchloom::objstore {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::size_t entries(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// The exit status of a child that runs `body`; its return value is the child's.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class PosixFileOpsTest : public testing::TestWithParam<bool> {
 protected:
  PosixFileOpsTest() { fs::create_directory(temp_); }

  std::unique_ptr<TempFile> written(std::string_view text) {
    auto file = files_->open_temp(temp_).value();
    const ByteSpan bytes = as_bytes(text);
    EXPECT_TRUE(file->write(std::span(&bytes, 1)).is_ok());
    EXPECT_TRUE(file->sync_data().is_ok());
    return file;
  }

  ScratchFolder scratch_;
  const std::string root_ = scratch_.path();
  const std::string temp_ = root_ + "/.tmp";
  const std::unique_ptr<FileOps> files_ = make_posix_file_ops({.unnamed_temp_files = GetParam()});
};

TEST_P(PosixFileOpsTest, LinksOnlyWhereTheNameIsFree) {
  EXPECT_TRUE(written("one")->link(root_ + "/x").value());
  EXPECT_FALSE(written("two")->link(root_ + "/x").value());
  EXPECT_FALSE(written("two")->link(temp_).value()) << "a folder has the name";
  EXPECT_EQ(content(root_ + "/x"), "one");
  EXPECT_EQ(entries(temp_), 0u);
}

TEST_P(PosixFileOpsTest, ReplacesAFileButNoFolder) {
  EXPECT_TRUE(written("one")->replace(root_ + "/x").is_ok());
  EXPECT_TRUE(written("two")->replace(root_ + "/x").is_ok());
  ASSERT_TRUE(files_->make_folder(root_ + "/folder").value());
  EXPECT_TRUE(written("two")->replace(root_ + "/folder").is(ErrorKind::kCorruption));
  EXPECT_EQ(content(root_ + "/x"), "two");
  EXPECT_EQ(entries(temp_), 0u);
}

TEST_P(PosixFileOpsTest, AFolderThatIsRemovedMeanwhileIsNotFound) {
  const std::string folder = root_ + "/gone";
  ASSERT_TRUE(files_->make_folder(folder).value());
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(files_->remove_folder(folder).value());
  // Followed, but no more there: as for one who is slow between the two.
  const auto file = files_->open_temp(fmt::format("/proc/self/fd/{}", fd));
  close(fd);
  EXPECT_TRUE(file.is(ErrorKind::kNotFound)) << file.status().to_string();
}

TEST_P(PosixFileOpsTest, MissingFoldersAreNotFoundAndFilesAreNoFolders) {
  ASSERT_TRUE(written("one")->link(root_ + "/x").value());
  const std::string missing = root_ + "/no/x";
  const std::string below_file = root_ + "/x/y";
  EXPECT_TRUE(written("a")->link(missing).is(ErrorKind::kNotFound));
  EXPECT_TRUE(written("a")->replace(missing).is(ErrorKind::kNotFound));
  EXPECT_TRUE(files_->open_temp(root_ + "/no").is(ErrorKind::kNotFound));
  EXPECT_TRUE(files_->make_folder(missing).is(ErrorKind::kNotFound));
  EXPECT_TRUE(files_->try_lock(missing).is(ErrorKind::kNotFound));
  EXPECT_TRUE(written("a")->link(below_file).is(ErrorKind::kInvalid));
  EXPECT_TRUE(written("a")->replace(below_file).is(ErrorKind::kInvalid));
  EXPECT_TRUE(files_->make_folder(below_file).is(ErrorKind::kInvalid));
  for (const std::string& path : {missing, below_file}) {
    EXPECT_EQ(files_->open_read(path).value(), nullptr);
    EXPECT_EQ(files_->open_folder(path).value(), nullptr);
    EXPECT_EQ(files_->file_size(path).value(), std::nullopt);
    EXPECT_FALSE(files_->unlink(path).value());
  }
}

TEST_P(PosixFileOpsTest, WritesManyPartsInOrder) {
  std::vector<std::string> texts;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    texts.push_back(i % 7 == 0 ? std::string() : std::to_string(i));
    expected += texts.back();
  }
  std::vector<ByteSpan> parts;
  for (const std::string& text : texts) parts.push_back(as_bytes(text));
  const auto file = files_->open_temp(temp_).value();
  ASSERT_TRUE(file->write(parts).is_ok());
  ASSERT_TRUE(file->link(root_ + "/x").value());
  EXPECT_EQ(content(root_ + "/x"), expected);
}

TEST_P(PosixFileOpsTest, ReadsToTheEndEvenWhenTheNameIsGone) {
  ASSERT_TRUE(written("0123456789")->link(root_ + "/x").value());
  const auto file = files_->open_read(root_ + "/x").value();
  ASSERT_TRUE(files_->unlink(root_ + "/x").value());
  Bytes out(4);
  EXPECT_EQ(file->size_bytes().value(), 10u);
  EXPECT_EQ(file->read(8, out).value(), 2u);
  EXPECT_EQ(as_text(ByteSpan(out).first(2)), "89");
  EXPECT_EQ(file->read(10, out).value(), 0u);
}

TEST_P(PosixFileOpsTest, ReadsNoFoldersAndNoPipes) {
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  for (const std::string& path : {temp_, root_ + "/pipe"}) {
    EXPECT_TRUE(files_->open_read(path).is(ErrorKind::kCorruption)) << "and does not block";
    EXPECT_TRUE(files_->file_size(path).is(ErrorKind::kCorruption));
  }
  EXPECT_TRUE(files_->unlink(temp_).is(ErrorKind::kCorruption));
  EXPECT_TRUE(files_->open_read(root_ + "/" + std::string(300, 'a')).is(ErrorKind::kInvalid));
}

TEST_P(PosixFileOpsTest, SyncsAndListsOneFolder) {
  ASSERT_TRUE(written("a")->link(root_ + "/x").value());
  const auto folder = files_->open_folder(root_).value();
  EXPECT_TRUE(folder->sync().is_ok());
  std::map<std::string, EntryKind> seen;
  while (const auto entry = folder->next().value()) seen[entry->name] = entry->kind;
  const std::map<std::string, EntryKind> expected = {{".tmp", EntryKind::kFolder},
                                                     {"x", EntryKind::kFile}};
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(folder->sync().is_ok());
}

TEST_P(PosixFileOpsTest, ALockExcludesThreadsAndProcessesUntilItsHolderDies) {
  const std::string path = root_ + "/lock";
  auto lock = files_->try_lock(path).value();
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(files_->try_lock(path).value(), nullptr);
  EXPECT_EQ(in_child([&] { return files_->try_lock(path).value() == nullptr ? 7 : 8; }), 7);
  lock.reset();
  EXPECT_EQ(in_child([&] {
              const FileLock* held = files_->try_lock(path).value().release();
              return held != nullptr ? 7 : 8;  // Dies with it.
            }),
            7);
  EXPECT_NE(files_->try_lock(path).value(), nullptr);
}

TEST_P(PosixFileOpsTest, AForkedChildDoesNotKeepALock) {
  const std::string path = root_ + "/lock";
  auto lock = files_->try_lock(path).value();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    _exit(static_cast<int>(read(ready[0], &byte, 1)));  // Lives, with a copy of the descriptor.
  }
  lock.reset();
  EXPECT_NE(files_->try_lock(path).value(), nullptr);
  EXPECT_EQ(write(ready[1], "x", 1), 1);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);
}

TEST_P(PosixFileOpsTest, SweepsOnlyFilesWhoseWriterIsDead) {
  const auto living = written("alive");
  EXPECT_EQ(in_child([&] {
              written("dead").release();
              return 7;
            }),
            7);
  std::size_t swept = 0;
  for (const auto& entry : fs::directory_iterator(temp_)) {
    if (files_->sweep_temp(entry.path()).value()) ++swept;
  }
  const bool leaves_names = !GetParam();
  EXPECT_EQ(swept, leaves_names ? 1u : 0u);
  EXPECT_EQ(entries(temp_), leaves_names ? 1u : 0u) << "the living one's";
  EXPECT_TRUE(living->link(root_ + "/x").value());
  EXPECT_EQ(content(root_ + "/x"), "alive");
  EXPECT_FALSE(files_->sweep_temp(temp_ + "/none").value());
}

TEST_P(PosixFileOpsTest, ForeignPermissionsAreInvalid) {
  ASSERT_TRUE(written("secret")->link(root_ + "/x").value());
  ASSERT_EQ(chmod((root_ + "/x").c_str(), 0), 0);
  ASSERT_EQ(chmod(temp_.c_str(), 0555), 0);
  ASSERT_EQ(chmod(root_.c_str(), 0555), 0);
  // Root may do everything, so ask as nobody.
  const int invalid = in_child([&] {
    if (geteuid() == 0 && setuid(65534) != 0) return 0;
    return (files_->open_read(root_ + "/x").is(ErrorKind::kInvalid) ? 1 : 0) +
           (files_->open_temp(temp_).is(ErrorKind::kInvalid) ? 2 : 0) +
           (files_->make_folder(root_ + "/y").is(ErrorKind::kInvalid) ? 4 : 0) +
           (files_->unlink(root_ + "/x").is(ErrorKind::kInvalid) ? 8 : 0) +
           (files_->try_lock(root_ + "/lock").is(ErrorKind::kInvalid) ? 16 : 0);
  });
  EXPECT_EQ(invalid, 31);
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(temp_.c_str(), 0755), 0);
}

TEST_P(PosixFileOpsTest, KeepsNoFileDescriptors) {
  ASSERT_TRUE(files_->make_folder(root_ + "/folder").value());
  const std::size_t before = entries("/proc/self/fd");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(written("a")->replace(root_ + "/x").is_ok());
    EXPECT_FALSE(written("a")->link(root_ + "/x").value());
    EXPECT_TRUE(written("a")->replace(root_ + "/folder").is(ErrorKind::kCorruption));
    EXPECT_TRUE(files_->open_read(temp_).is(ErrorKind::kCorruption));
    EXPECT_NE(files_->open_read(root_ + "/x").value(), nullptr);
    EXPECT_TRUE(files_->open_folder(root_).value()->next().is_ok());
    EXPECT_TRUE(files_->open_folder(root_).value()->sync().is_ok());
    const auto lock = files_->try_lock(root_ + "/lock").value();
    EXPECT_EQ(files_->try_lock(root_ + "/lock").value(), nullptr);
    EXPECT_FALSE(files_->sweep_temp(root_ + "/lock").value());
  }
  EXPECT_EQ(entries("/proc/self/fd"), before);
}

INSTANTIATE_TEST_SUITE_P(TempFiles, PosixFileOpsTest, testing::Bool(), temp_file_name);

TEST(FileError, SaysWhatToDoNext) {
  const std::map<int, ErrorKind> kinds = {
      {ENOSPC, ErrorKind::kExhausted},  {EDQUOT, ErrorKind::kExhausted},
      {EMFILE, ErrorKind::kExhausted},  {EACCES, ErrorKind::kInvalid},
      {EPERM, ErrorKind::kInvalid},     {EROFS, ErrorKind::kInvalid},
      {EISDIR, ErrorKind::kInvalid},    {ENOTDIR, ErrorKind::kInvalid},
      {ENOENT, ErrorKind::kNotFound},   {EIO, ErrorKind::kUnavailable},
      {ESTALE, ErrorKind::kUnavailable}};
  for (const auto& [error, kind] : kinds) {
    EXPECT_EQ(file_error(error, "read", "/x").kind(), kind) << error;
  }
  EXPECT_EQ(file_error(ENOSPC, "write", "/data/m/1").message(),
            "write /data/m/1: No space left on device (ENOSPC); free space or raise the quota, "
            "then repeat");
  EXPECT_TRUE(file_error(123456, "read", "/x").is(ErrorKind::kUnavailable));
}

}  // namespace
}  // namespace batchloom::objstore
