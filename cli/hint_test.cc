// SPDX-License-Identifier: Apache-2.0
#include "cli/hint.h"

#include <gtest/gtest.h>

#include <vector>

namespace batchloom::cli {
namespace {

const std::vector<std::string> kKnown = {"init", "ls", "show", "verify", "fence", "probe"};

TEST(Hint, FindsASlipOfTheFinger) {
  EXPECT_EQ(nearest_spelling("verfiy", kKnown), "verify");
  EXPECT_EQ(nearest_spelling("verifyy", kKnown), "verify");
  EXPECT_EQ(nearest_spelling("veify", kKnown), "verify");
  EXPECT_EQ(nearest_spelling("sl", kKnown), "ls");
  EXPECT_EQ(nearest_spelling("prove", kKnown), "probe");
}

TEST(Hint, PrefersTheNearest) {
  const std::vector<std::string> known = {"seeds", "seed"};
  EXPECT_EQ(nearest_spelling("seef", known), "seed");
  EXPECT_EQ(nearest_spelling("seedz", known), "seeds");
}

TEST(Hint, GuessesNothingFarOff) {
  EXPECT_EQ(nearest_spelling("remove", kKnown), std::nullopt);
  EXPECT_EQ(nearest_spelling("", kKnown), std::nullopt);
  EXPECT_EQ(nearest_spelling("verify", {}), std::nullopt);
}

}  // namespace
}  // namespace batchloom::cli
