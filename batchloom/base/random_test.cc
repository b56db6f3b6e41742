// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace batchloom {
namespace {

TEST(Random, IsXoshiro256StarStar) {
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4u);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452au);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0u);
}

TEST(Random, OneSeedIsOneSequence) {
  Random one(17);
  Random same(17);
  Random other(18);
  int equal_to_other = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = one.next();
    EXPECT_EQ(value, same.next());
    equal_to_other += value == other.next() ? 1 : 0;
  }
  EXPECT_EQ(equal_to_other, 0);
}

TEST(Random, BelowIsUniform) {
  constexpr std::uint64_t kDraws = 60'000;
  Random random(1);
  std::array<std::uint64_t, 6> counts{};
  for (std::uint64_t i = 0; i < kDraws; ++i) ++counts.at(random.below(6));
  // Five standard deviations of a binomial with p = 1/6.
  for (const std::uint64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 10'000, 457);
}

TEST(Random, BelowHasNoBiasForLargeN) {
  // For n = 3 x 2^62 a plain remainder falls below n / 3 half of the time, not a third.
  constexpr std::uint64_t kThird = std::uint64_t{1} << 62;
  Random random(2);
  int below_third = 0;
  for (int i = 0; i < 30'000; ++i) below_third += random.below(3 * kThird) < kThird ? 1 : 0;
  EXPECT_NEAR(below_third, 10'000, 409);
}

TEST(Random, TheEdges) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(random.below(1), 0u);
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1000));
  }
}

TEST(Random, ChanceCountsInThousandths) {
  Random random(4);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += random.chance(20) ? 1 : 0;
  EXPECT_NEAR(hits, 2000, 222);
}

TEST(RandomDeath, BelowZeroIsADefect) {
  Random random(5);
  EXPECT_DEATH(static_cast<void>(random.below(0)), "Random::below\\(0\\)");
}

}  // namespace
}  // namespace batchloom
