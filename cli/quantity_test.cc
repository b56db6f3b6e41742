// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <gtest/gtest.h>

namespace batchloom::cli {
namespace {

TEST(Quantity, ReadsNumbers) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("007"), 7u);
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", "1x", " 1", "1 ", "0x1", "18446744073709551616"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Quantity, ReadsBytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("3KiB"), 3u << 10);
  EXPECT_EQ(parse_bytes("64MiB"), 64u << 20);
  EXPECT_EQ(parse_bytes("2GiB"), std::uint64_t{2} << 30);
  for (const char* text : {"", "MiB", "1 MiB", "1MB", "1mib", "1.5MiB", "17179869184GiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Quantity, ReadsTokens) {
  EXPECT_EQ(parse_tokens("8192"), 8192u);
  EXPECT_EQ(parse_tokens("256K"), 256u << 10);
  EXPECT_EQ(parse_tokens("2M"), 2u << 20);
  EXPECT_EQ(parse_tokens("1G"), 1u << 30);
  for (const char* text : {"", "K", "2m", "2 M", "2MiB", "1.5M", "-1", "17179869184G"}) {
    EXPECT_EQ(parse_tokens(text), std::nullopt) << text;
  }
}

TEST(Quantity, ReadsTimes) {
  EXPECT_EQ(parse_duration("200ms"), std::chrono::milliseconds(200));
  EXPECT_EQ(parse_duration("5s"), std::chrono::seconds(5));
  EXPECT_EQ(parse_duration("10min"), std::chrono::minutes(10));
  for (const char* text : {"", "5", "s", "5 s", "5h", "1.5s", "99999999999999s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace batchloom::cli
