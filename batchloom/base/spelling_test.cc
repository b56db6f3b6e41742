// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/spelling.h"

#include <gtest/gtest.h>

#include <vector>

namespace batchloom {
namespace {

const std::vector<std::string> kKnown = {"init", "ls", "show", "verify", "fence", "probe"};

TEST(Spelling, FindsASlipOfTheFinger) {
  EXPECT_EQ(nearest_spelling("verfiy", kKnown), "verify");
  EXPECT_EQ(nearest_spelling("verifyy", kKnown), "verify");
  EXPECT_EQ(nearest_spelling("veify", kKnown), "verify");
  EXPECT_EQ(nearest_spelling("sl", kKnown), "ls");
  EXPECT_EQ(nearest_spelling("prove", kKnown), "probe");
}

TEST(Spelling, PrefersTheNearest) {
  const std::vector<std::string> known = {"seeds", "seed"};
  EXPECT_EQ(nearest_spelling("seef", known), "seed");
  EXPECT_EQ(nearest_spelling("seedz", known), "seeds");
}

TEST(Spelling, GuessesNothingFarOff) {
  EXPECT_EQ(nearest_spelling("remove", kKnown), std::nullopt);
  EXPECT_EQ(nearest_spelling("", kKnown), std::nullopt);
  EXPECT_EQ(nearest_spelling("verify", {}), std::nullopt);
}

}  // namespace
}  // namespace batchloom
