// SPDX-License-Identifier: Apache-2.0
// The fake must be at least as cruel as a real machine: else what passes on it proves nothing.
#include "batchloom/objstore/power_cut_testing.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <set>

namespace batchloom::objstore {
namespace {

constexpr std::uint64_t kSeeds = 200;

/// What a file may hold after a cut; "(missing)" where there is none.
std::string content(PowerCutFileOps& files, const std::string& path) {
  const auto file = files.open_read(path);
  if (!file.is_ok()) return file.status().to_string();
  if (*file == nullptr) return "(missing)";
  Bytes bytes(*(*file)->size_bytes());
  EXPECT_TRUE((*file)->read(0, bytes).is_ok());
  return std::string(as_text(bytes));
}

std::unique_ptr<TempFile> written(PowerCutFileOps& files, std::string_view text) {
  auto file = files.open_temp("/").value();
  const ByteSpan bytes = as_bytes(text);
  EXPECT_TRUE(file->write(std::span(&bytes, 1)).is_ok());
  return file;
}

void make_durable(PowerCutFileOps& files, const std::string& path, std::string_view text) {
  const auto file = written(files, text);
  ASSERT_TRUE(file->sync_data().is_ok());
  ASSERT_TRUE(file->replace(path).is_ok());
  ASSERT_TRUE(files.open_folder("/").value()->sync().is_ok());
}

/// All that `/x` holds after cuts with many seeds, each on a disk that `prepare` made.
std::set<std::string> after_cuts(const std::function<void(PowerCutFileOps&)>& prepare) {
  std::set<std::string> contents;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    PowerCutFileOps files;
    prepare(files);
    files.power_cut(seed);
    contents.insert(content(files, "/x"));
    EXPECT_EQ(content(files, "/x"), content(files, "/x"));
  }
  return contents;
}

using Contents = std::set<std::string>;

TEST(PowerCut, KeepsWhatWasSynced) {
  EXPECT_EQ(after_cuts([](auto& files) { make_durable(files, "/x", "abc"); }), Contents{"abc"});
}

TEST(PowerCut, AnUnsyncedNameMayBeThere) {
  const auto create = [](PowerCutFileOps& files) {
    const auto file = written(files, "abc");
    ASSERT_TRUE(file->sync_data().is_ok());
    ASSERT_TRUE(file->link("/x").value());
  };
  EXPECT_EQ(after_cuts(create), (Contents{"abc", "(missing)"}));
}

TEST(PowerCut, AnUnsyncedReplacementIsOldOrNew) {
  const auto replace = [](PowerCutFileOps& files) {
    make_durable(files, "/x", "old");
    const auto file = written(files, "new");
    ASSERT_TRUE(file->sync_data().is_ok());
    ASSERT_TRUE(file->replace("/x").is_ok());
  };
  EXPECT_EQ(after_cuts(replace), (Contents{"old", "new"}));
}

TEST(PowerCut, AnUnsyncedRemovalMayNotHaveHappened) {
  const auto remove = [](PowerCutFileOps& files) {
    make_durable(files, "/x", "abc");
    ASSERT_TRUE(files.unlink("/x").value());
  };
  EXPECT_EQ(after_cuts(remove), (Contents{"abc", "(missing)"}));
}

TEST(PowerCut, UnsyncedNamesAreLostOneByOne) {
  Contents pairs;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    PowerCutFileOps files;
    ASSERT_TRUE(files.make_folder("/a").value());
    ASSERT_TRUE(files.make_folder("/b").value());
    files.power_cut(seed);
    pairs.insert(std::string(*files.open_folder("/a") ? "a" : "") +
                 (*files.open_folder("/b") ? "b" : ""));
  }
  EXPECT_EQ(pairs, (Contents{"", "a", "b", "ab"}));
}

TEST(PowerCut, UnsyncedBytesMayBeEmptyTornOrGarbage) {
  const Contents contents = after_cuts([](PowerCutFileOps& files) {
    ASSERT_TRUE(written(files, "abc")->link("/x").value());
    ASSERT_TRUE(files.open_folder("/").value()->sync().is_ok());
  });
  for (const std::string expected : {"", "a", "ab", "abc"}) {
    EXPECT_TRUE(contents.contains(expected)) << expected;
  }
  EXPECT_GT(contents.size(), 10u) << "there should be garbage";
  EXPECT_FALSE(contents.contains("(missing)"));
}

TEST(PowerCut, AFailedDataSyncIsNotHealedByALaterOne) {
  const Contents contents = after_cuts([](PowerCutFileOps& files) {
    const auto file = written(files, "abc");
    files.faults().fail_call(0, {.error = EIO});
    EXPECT_TRUE(file->sync_data().is(ErrorKind::kUnavailable));
    EXPECT_TRUE(file->sync_data().is_ok());
    ASSERT_TRUE(file->link("/x").value());
    ASSERT_TRUE(files.open_folder("/").value()->sync().is_ok());
  });
  EXPECT_TRUE(contents.contains(""));
}

void create_with_failed_sync(PowerCutFileOps& files) {
  const auto file = written(files, "abc");
  ASSERT_TRUE(file->sync_data().is_ok());
  ASSERT_TRUE(file->link("/x").value());
  const auto folder = files.open_folder("/").value();
  files.faults().fail_call(0, {.error = EIO});
  EXPECT_TRUE(folder->sync().is(ErrorKind::kUnavailable));
  EXPECT_TRUE(folder->sync().is_ok());
}

TEST(PowerCut, AFailedFolderSyncIsNotHealedByALaterOne) {
  EXPECT_EQ(after_cuts(create_with_failed_sync), (Contents{"abc", "(missing)"}));
}

TEST(PowerCut, ANewerChangeHealsAFailedFolderSync) {
  const auto again = [](PowerCutFileOps& files) {
    create_with_failed_sync(files);
    make_durable(files, "/x", "new");
  };
  EXPECT_EQ(after_cuts(again), Contents{"new"});
}

TEST(PowerCut, EndsWhatIsOpen) {
  PowerCutFileOps files;
  make_durable(files, "/x", "abc");
  const auto temp = written(files, "new");
  const auto file = files.open_read("/x").value();
  const auto folder = files.open_folder("/").value();
  const auto lock = files.try_lock("/lock").value();
  files.power_cut(1);
  EXPECT_TRUE(temp->sync_data().is(ErrorKind::kUnavailable));
  EXPECT_TRUE(temp->replace("/x").is(ErrorKind::kUnavailable));
  EXPECT_TRUE(file->size_bytes().is(ErrorKind::kUnavailable));
  EXPECT_TRUE(folder->sync().is(ErrorKind::kUnavailable));
  EXPECT_TRUE(folder->next().is(ErrorKind::kUnavailable));
  EXPECT_NE(files.try_lock("/lock").value(), nullptr);
  EXPECT_EQ(content(files, "/x"), "abc");
}

TEST(PowerCut, FailsTheCallsItIsToldTo) {
  PowerCutFileOps files;
  files.faults().fail_call(1, {.error = ENOSPC});
  EXPECT_TRUE(files.make_folder("/a").value());
  EXPECT_TRUE(files.make_folder("/b").is(ErrorKind::kExhausted));
  EXPECT_TRUE(files.make_folder("/b").value());
  files.faults().fail_every(FileCall::kMakeFolder, {.error = EACCES});
  EXPECT_TRUE(files.make_folder("/c").is(ErrorKind::kInvalid));
  EXPECT_TRUE(files.make_folder("/c").is(ErrorKind::kInvalid));
  EXPECT_TRUE(files.open_folder("/c").is_ok());
  files.faults().clear();
  files.faults().fail_call(0, {.error = EIO, .takes_effect = true});
  EXPECT_TRUE(files.make_folder("/c").is(ErrorKind::kUnavailable));
  EXPECT_FALSE(files.make_folder("/c").value()) << "the failed call made it";
  EXPECT_EQ(files.faults().calls(FileCall::kMakeFolder), 7u);
  EXPECT_EQ(files.faults().calls(), 8u);
}

TEST(PowerCut, PowerStaysOffUntilTheCut) {
  PowerCutFileOps files;
  files.faults().fail_call(0, {.error = EIO, .power_off = true});
  EXPECT_TRUE(files.make_folder("/a").is(ErrorKind::kUnavailable));
  EXPECT_TRUE(files.open_folder("/").is(ErrorKind::kUnavailable));
  files.power_cut(1);
  EXPECT_TRUE(files.make_folder("/a").value());
}

TEST(PowerCut, SweepsOnlyTemporaryFilesWithoutAWriter) {
  PowerCutFileOps files;
  const auto file = written(files, "abc");
  const auto folder = files.open_folder("/").value();
  const std::string name = "/" + folder->next().value()->name;
  EXPECT_FALSE(files.sweep_temp(name).value());
  ASSERT_TRUE(folder->sync().is_ok());
  files.power_cut(1);
  EXPECT_TRUE(files.sweep_temp(name).value());
  EXPECT_FALSE(files.sweep_temp(name).value());
}

TEST(PowerCut, ALockIsFreeWhenItsHolderIsGone) {
  PowerCutFileOps files;
  auto lock = files.try_lock("/lock").value();
  ASSERT_NE(lock, nullptr);
  EXPECT_EQ(files.try_lock("/lock").value(), nullptr);
  lock.reset();
  EXPECT_NE(files.try_lock("/lock").value(), nullptr);
  EXPECT_TRUE(files.try_lock("/none/lock").is(ErrorKind::kNotFound));
}

}  // namespace
}  // namespace batchloom::objstore
