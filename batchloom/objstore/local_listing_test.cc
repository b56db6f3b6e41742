// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/local_listing.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/objstore/power_cut_testing.h"

namespace batchloom::objstore {
namespace {

using Keys = std::set<std::string>;

Keys keys_of(ObjectStore& store, const ListQuery& query = {}) {
  const auto found = list_all(store, query);
  EXPECT_TRUE(found.is_ok()) << found.status().to_string();
  Keys keys;
  if (found.is_ok()) {
    for (const auto& [key, size_bytes] : *found) keys.insert(key);
  }
  return keys;
}

/// An empty file, without the cost of a put.
void touch(FileOps& files, const std::string& path) {
  ASSERT_TRUE(files.open_temp("/store/.tmp").value()->link(path).value());
}

class LocalListingTest : public testing::Test {
 protected:
  void put(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) ASSERT_TRUE(put_text(*store_, key, key).is_ok());
  }

  PowerCutFileOps files_;
  ManualRuntime runtime_;
  std::unique_ptr<LocalStore> store_ =
      LocalStore::create({.root = "/store"}, files_, runtime_).value();
};

TEST_F(LocalListingTest, AnEmptyStoreListsNothing) {
  EXPECT_EQ(keys_of(*store_), Keys{});
}

TEST_F(LocalListingTest, APrefixIsAFolderOrAPartOfAName) {
  put({"FORMAT", "m/0001", "m/0002", "m/1001", "a-1", "a-2/x", "a/x", "ab", "d/00/x", "d/01/y"});
  EXPECT_EQ(keys_of(*store_).size(), 10u);
  EXPECT_EQ(keys_of(*store_, {.prefix = "m/"}), (Keys{"m/0001", "m/0002", "m/1001"}));
  EXPECT_EQ(keys_of(*store_, {.prefix = "m/000"}), (Keys{"m/0001", "m/0002"}));
  EXPECT_EQ(keys_of(*store_, {.prefix = "m"}), (Keys{"m/0001", "m/0002", "m/1001"}));
  EXPECT_EQ(keys_of(*store_, {.prefix = "a-"}), (Keys{"a-1", "a-2/x"}));
  EXPECT_EQ(keys_of(*store_, {.prefix = "a"}), (Keys{"a-1", "a-2/x", "a/x", "ab"}));
  EXPECT_EQ(keys_of(*store_, {.prefix = "d/"}), (Keys{"d/00/x", "d/01/y"}));
  EXPECT_EQ(keys_of(*store_, {.prefix = "d/00/x"}), Keys{"d/00/x"});
  EXPECT_EQ(keys_of(*store_, {.prefix = "none/"}), Keys{});
  EXPECT_EQ(keys_of(*store_, {.prefix = "FORMAT/"}), Keys{});
  EXPECT_EQ(list_all(*store_, {.prefix = "m/1"}).value().at("m/1001"), 6u);
}

TEST_F(LocalListingTest, OpensOnlyFoldersThatMayHoldTheKeys) {
  put({"a/1", "ab/1", "b/1", "b/c/1"});
  const auto opened = [&](const ListQuery& query) {
    const std::uint64_t before = files_.faults().calls(FileCall::kOpenFolder);
    keys_of(*store_, query);
    return files_.faults().calls(FileCall::kOpenFolder) - before;
  };
  EXPECT_EQ(opened({}), 5u) << "the root, a, ab, b, b/c";
  EXPECT_EQ(opened({.prefix = "a"}), 3u) << "the root, a, ab";
  EXPECT_EQ(opened({.prefix = "b/"}), 2u) << "b, b/c";
  EXPECT_EQ(opened({.start_after = "b/0"}), 3u) << "the root, b, b/c";
}

TEST_F(LocalListingTest, NeverLeavesTheStoreNorShowsItsOwnFiles) {
  ASSERT_TRUE(files_.make_folder("/outside").value());
  put({"m/1"});
  ASSERT_TRUE(remove_key(*store_, "none").is_ok());
  const auto temp = files_.open_temp("/store/.tmp").value();
  touch(files_, "/outside/x");
  touch(files_, "/store/m/foreign name");
  touch(files_, "/store/m/.hidden");
  EXPECT_EQ(keys_of(*store_), Keys{"m/1"});
  for (const std::string prefix : {".", ".tmp/", "../outside/", "m/../", "/", "//", "m//", "/m"}) {
    const std::uint64_t calls = files_.faults().calls();
    EXPECT_EQ(keys_of(*store_, {.prefix = prefix}), Keys{}) << prefix;
    EXPECT_EQ(files_.faults().calls(), calls) << prefix << " need not be looked for";
  }
}

TEST_F(LocalListingTest, ShowsNothingThatVanishesMeanwhile) {
  put({"m/1", "m/2", "m/3"});
  const auto listing = store_->list("m/", "", {}).value();
  files_.faults().before_call([&](FileCall call, const std::string& path) {
    if (call != FileCall::kFileSize || path != "/store/m/2") return;
    files_.faults().before_call({});
    ASSERT_TRUE(files_.unlink(path).value());
  });
  EXPECT_EQ(listing->next_page({}).value().size(), 2u);
  EXPECT_TRUE(listing->next_page({}).value().empty());
}

TEST_F(LocalListingTest, GoesOnAfterADeadlineAndEndsWithAnError) {
  put({"m/1", "m/2"});
  const auto listing = store_->list("", "", {}).value();
  const CallOptions late{.deadline = runtime_.now()};
  EXPECT_TRUE(listing->next_page(late).is(ErrorKind::kUnavailable));
  EXPECT_EQ(listing->next_page({}).value().size(), 2u);

  const auto failing = store_->list("", "", {}).value();
  files_.faults().fail_every(FileCall::kNextEntry, {.error = EIO});
  EXPECT_TRUE(failing->next_page({}).is(ErrorKind::kUnavailable));
  files_.faults().clear();
  EXPECT_TRUE(failing->next_page({}).is(ErrorKind::kUnavailable)) << "it must not look complete";
}

TEST_F(LocalListingTest, TakesALinearNumberOfCallsAndFullPages) {
  constexpr std::uint64_t kFolders = 4;
  constexpr std::uint64_t kNames = 25'000;
  put({"d/0/first", "d/1/first", "d/2/first", "d/3/first"});
  for (std::uint64_t i = 0; i < kNames; ++i) {
    for (std::uint64_t folder = 0; folder < kFolders; ++folder) {
      touch(files_, "/store/d/" + std::to_string(folder) + "/" + std::to_string(i));
    }
  }
  const std::uint64_t before = files_.faults().calls();
  const auto listing = store_->list("", "", {}).value();
  std::uint64_t shown = 0;
  for (;;) {
    const auto page = listing->next_page({}).value();
    if (page.empty()) break;
    shown += page.size();
    EXPECT_LE(page.size(), 1000u) << "a page bounds the memory";
  }
  EXPECT_EQ(shown, kFolders * (kNames + 1));
  EXPECT_LE(files_.faults().calls() - before, 2 * shown + 40);
}

/// A listing is what its definition says, whatever the names.
RC_GTEST_PROP(LocalListingProperty, ShowsTheKeysThatBeginWithThePrefixAndComeLater, ()) {
  const auto segment = rc::gen::resize(6, rc::gen::nonEmpty(rc::gen::container<std::string>(
                                              rc::gen::element('a', 'b', '-', '.', '0'))));
  const auto key =
      rc::gen::suchThat(rc::gen::map(rc::gen::container<std::vector<std::string>>(segment),
                                     [](const std::vector<std::string>& segments) {
                                       std::string joined;
                                       for (const auto& one : segments)
                                         joined += (joined.empty() ? "" : "/") + one;
                                       return joined.substr(0, 60);
                                     }),
                        [](const std::string& text) { return validate_key(text).is_ok(); });
  PowerCutFileOps files;
  ManualRuntime runtime;
  const auto store = LocalStore::create({.root = "/store"}, files, runtime).value();
  Keys there;
  for (const std::string& one : *rc::gen::container<std::vector<std::string>>(key)) {
    if (put_text(*store, one, "x").is_ok())
      there.insert(one);  // Else it is a folder, or below one.
  }
  const std::string some = *key;
  const ListQuery query{.prefix = some.substr(0, *rc::gen::inRange<std::size_t>(0, 4)),
                        .start_after = *rc::gen::element(std::string(), some)};
  Keys expected;
  for (const std::string& one : there) {
    if (one.starts_with(query.prefix) && one > query.start_after) expected.insert(one);
  }
  RC_ASSERT(keys_of(*store, query) == expected);
}

TEST(LocalListingReal, CrossesTheKernelsBufferAndShowsWhatIsNoFile) {
  const ScratchFolder scratch;
  const auto files = make_posix_file_ops();
  ManualRuntime runtime;
  const auto store =
      LocalStore::create({.root = scratch.path(), .fsync = FsyncPolicy::kNone}, *files, runtime)
          .value();
  ASSERT_TRUE(put_text(*store, "m/target", "12345").is_ok());
  std::filesystem::create_symlink("target", scratch.path() + "/m/link");
  std::filesystem::create_symlink("nowhere", scratch.path() + "/m/dangling");
  Keys expected = {"m/target", "m/link", "m/dangling"};
  for (int i = 0; i < 250; ++i) {
    const std::string key = "m/" + std::string(200, 'x') + std::to_string(i);
    std::ofstream(scratch.path() + "/" + key) << "x";
    expected.insert(key);
  }
  EXPECT_EQ(keys_of(*store), expected);
  EXPECT_EQ(list_all(*store).value().at("m/target"), 5u);
  EXPECT_EQ(list_all(*store).value().at("m/link"), 0u);
}

}  // namespace
}  // namespace batchloom::objstore
