// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/strong_int.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

namespace batchloom {
namespace {

using Apples = StrongInt<struct AppleTag>;
using Pears = StrongInt<struct PearTag, std::uint32_t>;
using Tiny = StrongInt<struct TinyTag, std::uint8_t>;

template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };
template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };

static_assert(!std::is_convertible_v<std::uint64_t, Apples>);
static_assert(!std::is_convertible_v<Apples, std::uint64_t>);
static_assert(!std::is_constructible_v<Apples, Pears>);
static_assert(!Comparable<Apples, Pears>);
static_assert(!Comparable<Apples, std::uint64_t>);
static_assert(!Addable<Apples, Apples>);
static_assert(sizeof(Pears) == sizeof(std::uint32_t));

TEST(StrongInt, StartsAtZeroAndIsOrdered) {
  EXPECT_EQ(Apples().value, 0u);
  EXPECT_LT(Apples(3), Apples(4));
  EXPECT_EQ(Apples(3), Apples(3));
  EXPECT_NE(Apples(3), Apples(4));
}

TEST(StrongInt, MovesAlongItsAxis) {
  Apples apples(3);
  EXPECT_EQ(++apples, Apples(4));
  EXPECT_EQ(apples + 2, Apples(6));
  EXPECT_EQ(apples - 1, Apples(3));
  EXPECT_EQ(Apples(9) - apples, 5u);
}

TEST(StrongInt, StaysInItsRepresentation) {
  EXPECT_EQ((Tiny(250) + 10).value, 4);
  EXPECT_EQ(Tiny(3) - Tiny(5), 254);
}

}  // namespace
}  // namespace batchloom
