// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/args_testing.h"

namespace batchloom::cli {
namespace {

using testing::HasSubstr;

TEST(StateArgs, ShowsTheNewestStepAnotherOneOrAFile) {
  EXPECT_FALSE(parse_as<StateShow>({"state", "show", "/x"}).at.has_value());
  EXPECT_EQ(parse_as<StateShow>({"state", "show", "/x", "--step=0"}).at->step, store::Step(0));
  const auto saved = parse_as<StateShow>({"state", "show", "/x", "--saved=7", "--json"});
  EXPECT_TRUE(saved.at->is_file()) << "whatever it is called";
  EXPECT_EQ(saved.at->text, "7");
  EXPECT_TRUE(saved.stream.json);
  EXPECT_THAT(usage_error({"state", "show", "/x", "--step=1", "--saved=f"}), HasSubstr("excludes"));
}

TEST(StateArgs, ComparesStepsFilesAndTheStart) {
  const auto diff = parse_as<StateDiff>({"state", "diff", "/x", "start", "12"});
  EXPECT_EQ(diff.stream.location.folder, "/x");
  EXPECT_TRUE(diff.a.start);
  EXPECT_FALSE(diff.a.is_file());
  EXPECT_EQ(diff.b.step, store::Step(12));
  EXPECT_FALSE(diff.b.is_file());
  const auto files = parse_as<StateDiff>({"state", "diff", "/x", "./12", "old.state"});
  EXPECT_TRUE(files.a.is_file());
  EXPECT_TRUE(files.b.is_file());
  EXPECT_THAT(usage_error({"state", "diff", "/x", "3"}), HasSubstr("B is required"));
}

}  // namespace
}  // namespace batchloom::cli
