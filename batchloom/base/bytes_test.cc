// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/bytes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace batchloom {
namespace {

template <class T>
void expect_round_trip(T value) {
  std::array<std::byte, sizeof(T)> buffer{};
  store_le(value, buffer.data());
  RC_ASSERT(load_le<T>(buffer.data()) == value);
}

TEST(Bytes, IntegersAreLittleEndian) {
  std::array<std::byte, 8> buffer{};
  store_le<std::uint64_t>(0x0807060504030201, buffer.data());
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(buffer[i], static_cast<std::byte>(i + 1));
  EXPECT_EQ(load_le<std::uint16_t>(buffer.data()), 0x0201);
  EXPECT_EQ(load_le<std::uint32_t>(buffer.data() + 4), 0x08070605u);
}

RC_GTEST_PROP(Bytes, IntegersRoundTrip,
              (std::uint8_t a, std::uint16_t b, std::uint32_t c, std::uint64_t d)) {
  expect_round_trip(a);
  expect_round_trip(b);
  expect_round_trip(c);
  expect_round_trip(d);
}

RC_GTEST_PROP(Bytes, TextRoundTrips, (std::string text)) {
  RC_ASSERT(as_text(as_bytes(text)) == text);
  RC_ASSERT(as_text(to_bytes(text)) == text);
}

TEST(Bytes, StoreTouchesNothingBehind) {
  std::array<std::byte, 3> buffer{std::byte{9}, std::byte{9}, std::byte{9}};
  store_le<std::uint16_t>(0, buffer.data());
  EXPECT_EQ(buffer[2], std::byte{9});
}

}  // namespace
}  // namespace batchloom
