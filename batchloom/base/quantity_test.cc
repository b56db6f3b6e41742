// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/quantity.h"

#include <gtest/gtest.h>

namespace batchloom {
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
  EXPECT_EQ(parse_bytes("200 GiB"), std::uint64_t{200} << 30);
  EXPECT_EQ(parse_bytes("3TiB"), std::uint64_t{3} << 40);
  EXPECT_EQ(parse_bytes("5 B"), 5u);
  for (const char* text : {"", "MiB", "1  MiB", "1 ", " 1MiB", "1MB", "1mib", "1.5MiB",
                           "17179869184GiB", "16777216TiB"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(Quantity, WritesBytesAsItReadsThem) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1 KiB");
  EXPECT_EQ(bytes_text(std::uint64_t{200} << 30), "200 GiB");
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 1023}) {
    EXPECT_EQ(parse_bytes(bytes_text(bytes)), bytes);
  }
}

TEST(Quantity, ReadsCounts) {
  EXPECT_EQ(parse_count("8192"), 8192u);
  EXPECT_EQ(parse_count("256K"), 256u << 10);
  EXPECT_EQ(parse_count("2M"), 2u << 20);
  EXPECT_EQ(parse_count("1G"), 1u << 30);
  for (const char* text : {"", "K", "2m", "2  M", "2MiB", "1.5M", "-1", "17179869184G"}) {
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
  }
}

TEST(Quantity, ReadsTimes) {
  EXPECT_EQ(parse_duration("200ms"), std::chrono::milliseconds(200));
  EXPECT_EQ(parse_duration("5s"), std::chrono::seconds(5));
  EXPECT_EQ(parse_duration("10min"), std::chrono::minutes(10));
  for (const char* text : {"", "5", "s", "5  s", "5h", "1.5s", "99999999999999s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace batchloom
