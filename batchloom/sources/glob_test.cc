// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/glob.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace batchloom::sources {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::string>;

/// A folder of its own for each test.
class GlobTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            fmt::format("glob_{}", testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void make(const std::string& name) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << name;
  }
  void link(const std::string& to, const std::string& name) const {
    fs::create_symlink(to, root_ / name);
  }
  std::string in_root(const std::string& name) const { return (root_ / name).string(); }

  /// What the pattern matches, without the folder.
  Files matching(const std::string& pattern) const {
    const auto files = files_matching(in_root(pattern));
    EXPECT_TRUE(files.is_ok()) << files.status().to_string();
    Files names;
    if (!files.is_ok()) return names;
    for (const std::string& file : *files) names.push_back(file.substr(root_.string().size() + 1));
    return names;
  }
  Status refused(const std::string& pattern) const {
    return files_matching(in_root(pattern)).status();
  }

  fs::path root_;
};

TEST_F(GlobTest, WildcardsStandForPartsOfNames) {
  for (const std::string name : {"a1.x", "a2.x", "b1.x", "a10.x", "a*.x", "A1.x"}) make(name);
  EXPECT_EQ(matching("a?.x"), (Files{"a*.x", "a1.x", "a2.x"}));
  EXPECT_EQ(matching("a*.x"), (Files{"a*.x", "a1.x", "a10.x", "a2.x"}));
  EXPECT_EQ(matching("[ab]1.x"), (Files{"a1.x", "b1.x"}));
  EXPECT_EQ(matching("a[0-9].x"), (Files{"a1.x", "a2.x"}));
  EXPECT_EQ(matching("[!a]1.x"), (Files{"A1.x", "b1.x"}));
  EXPECT_EQ(matching("a\\*.x"), (Files{"a*.x"}));
  EXPECT_EQ(matching("a1.x"), (Files{"a1.x"}));
  EXPECT_EQ(matching("a1**"), (Files{"a1.x", "a10.x"})) << "within a name it is a star";
}

TEST_F(GlobTest, NamesAreBytesWhateverTheLocale) {
  make("\xff.x");
  make("\u00e9.x");
  make("b.x");
  make("B.x");
  const std::string before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "C.UTF-8");
  EXPECT_EQ(matching("?.x"), (Files{"B.x", "b.x", "\xff.x"}));
  EXPECT_EQ(matching("??.x"), (Files{"\u00e9.x"}));
  EXPECT_EQ(matching("[a-c].x"), (Files{"b.x"}));
  std::setlocale(LC_ALL, before.c_str());
}

TEST_F(GlobTest, NoWildcardStandsForALeadingDot) {
  for (const std::string name : {".hidden.x", "seen.x", ".folder/in.x", "d/.hidden.x", "d/s.x"})
    make(name);
  EXPECT_EQ(matching("*.x"), (Files{"seen.x"}));
  for (const std::string pattern : {"?hidden.x", "[.]hidden.x", "*/in.x", "**/in.x"}) {
    EXPECT_TRUE(refused(pattern).is(ErrorKind::kNotFound)) << pattern;
  }
  EXPECT_EQ(matching("**/*.x"), (Files{"d/s.x", "seen.x"}));
  EXPECT_EQ(matching("**"), (Files{"d/s.x", "seen.x"}));
  EXPECT_EQ(matching(".*.x"), (Files{".hidden.x"})) << "a dot that is asked for";
  EXPECT_EQ(matching(".folder/*"), (Files{".folder/in.x"}));
}

TEST_F(GlobTest, TwoStarsStandForAnyFolders) {
  for (const std::string name : {"x.y", "a/x.y", "a/b/x.y", "a/b/c/x.y", "a/b/c/other"}) make(name);
  EXPECT_EQ(matching("**/x.y"), (Files{"a/b/c/x.y", "a/b/x.y", "a/x.y", "x.y"}));
  EXPECT_EQ(matching("a/**/x.y"), (Files{"a/b/c/x.y", "a/b/x.y", "a/x.y"}));
  EXPECT_EQ(matching("**/b/**/x.y"), (Files{"a/b/c/x.y", "a/b/x.y"}));
  EXPECT_EQ(matching("a/b/**"), (Files{"a/b/c/other", "a/b/c/x.y", "a/b/x.y"}));
  EXPECT_EQ(matching("**/**/**/other"), (Files{"a/b/c/other"}));
  EXPECT_EQ(matching("*/*/x.y"), (Files{"a/b/x.y"}));
}

TEST_F(GlobTest, FoldersAndPipesAreNoFiles) {
  make("folder.x/inner");
  make("file.x");
  ASSERT_EQ(mkfifo(in_root("pipe.x").c_str(), 0600), 0);
  EXPECT_EQ(matching("*.x"), (Files{"file.x"}));
  EXPECT_TRUE(refused("pipe.x").is(ErrorKind::kNotFound));
  const Status folder = refused("folder.x");
  EXPECT_TRUE(folder.is(ErrorKind::kInvalid));
  EXPECT_EQ(folder.message(),
            in_root("folder.x") + ": a folder; name its files, as " + in_root("folder.x") + "/*");
  EXPECT_TRUE(refused("folder.x/").is(ErrorKind::kInvalid));
}

TEST_F(GlobTest, LinksAreFollowedWhereTheyAreNamed) {
  make("real/a.x");
  link("real/a.x", "file_link.x");
  link("real", "folder_link");
  EXPECT_EQ(matching("*.x"), (Files{"file_link.x"}));
  EXPECT_EQ(matching("*/a.x"), (Files{"folder_link/a.x", "real/a.x"}));
  EXPECT_EQ(matching("folder_link/*"), (Files{"folder_link/a.x"}));
  EXPECT_EQ(matching("**/a.x"), (Files{"real/a.x"})) << "once, by one name";
  EXPECT_EQ(matching("folder_link/**"), (Files{"folder_link/a.x"}));
}

TEST_F(GlobTest, LoopsOfLinksEnd) {
  make("a/x.y");
  link("..", "a/up");
  link(".", "a/here");
  EXPECT_EQ(matching("**/x.y"), (Files{"a/x.y"}));
  EXPECT_EQ(matching("*/*/x.y"), (Files{"a/here/x.y"}));
  link("self", "self");
  EXPECT_FALSE(refused("self").is_ok());
  EXPECT_FALSE(refused("self/x").is_ok());
  EXPECT_FALSE(refused("**").is_ok()) << "a link to nothing that one could read";
}

/// Data that somebody meant to be there must not be left out in silence.
TEST_F(GlobTest, ALinkToNothingIsNamed) {
  make("a.x");
  link("gone", "b.x");
  const Status status = refused("*.x");
  EXPECT_TRUE(status.is(ErrorKind::kNotFound));
  EXPECT_EQ(status.message(),
            in_root("b.x") + ": a link to nothing; remove it, or repair what it leads to");
  EXPECT_EQ(refused("b.x").message(), status.message());
}

TEST_F(GlobTest, NothingFoundIsAnErrorWithTheNearestFolder) {
  make("data/docs/a.x");
  const std::pair<std::string, std::string> cases[] = {
      {"data/docs/*.jsonl", "data/docs"},
      {"data/dogs/*.x", "data"},
      {"data/docs/a.x/b", "data/docs"},
      {"*/docs/b.x", ""},
      {"data/**/b.x", "data"},
      {"no.x", ""},
  };
  for (const auto& [pattern, nearest] : cases) {
    const Status status = refused(pattern);
    EXPECT_TRUE(status.is(ErrorKind::kNotFound)) << pattern;
    EXPECT_EQ(status.message(),
              fmt::format("{}: no plain file has such a name; the nearest folder that exists is {}",
                          in_root(pattern), nearest.empty() ? root_.string() : in_root(nearest)));
  }
  for (const std::string empty : {"", "/", "//"}) {
    EXPECT_TRUE(files_matching(empty).is(ErrorKind::kInvalid)) << empty;
  }
  EXPECT_TRUE(files_matching("no/such*file").status().message().ends_with("exists is ."));
}

TEST_F(GlobTest, WhatMustNotBeReadIsNamed) {
  make("open/a.x");
  make("shut/a.x");
  if (geteuid() == 0) return;  // Whom nothing is forbidden.
  fs::permissions(root_ / "shut", fs::perms::none);
  EXPECT_TRUE(refused("*/*.x").is(ErrorKind::kInvalid));
  EXPECT_TRUE(refused("**").is(ErrorKind::kInvalid));
  EXPECT_TRUE(refused("shut/a.x").is(ErrorKind::kInvalid));
  fs::permissions(root_ / "shut", fs::perms::owner_all);
}

TEST_F(GlobTest, RelativePatternsGiveRelativeNames) {
  make("d/a.x");
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  EXPECT_EQ(files_matching("*/a.x").value(), (Files{"d/a.x"}));
  EXPECT_EQ(files_matching("./d//*.x").value(), (Files{"./d/a.x"}));
  EXPECT_EQ(files_matching("d/../d/*").value(), (Files{"d/../d/a.x"}));
  fs::current_path(before);
}

}  // namespace
}  // namespace batchloom::sources
