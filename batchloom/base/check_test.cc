// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/check.h"

#include <gtest/gtest.h>

#include <string>

namespace batchloom {
namespace {

TEST(Check, HoldsInSilenceAndDoesNotBuildItsMessage) {
  int built = 0;
  const auto message = [&] {
    ++built;
    return std::string("built");
  };
  BL_CHECK(1 + 1 == 2, message());
  EXPECT_EQ(built, 0);
}

TEST(Check, EvaluatesItsConditionOnce) {
  int evaluated = 0;
  BL_CHECK(++evaluated > 0, "");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeath, NamesConditionPlaceAndMessage) {
  const int slot = 3;
  EXPECT_DEATH(BL_CHECK(slot == 4, "slot is " + std::to_string(slot)),
               "check_test\\.cc:[0-9]+: check failed: slot == 4: slot is 3");
}

}  // namespace
}  // namespace batchloom
