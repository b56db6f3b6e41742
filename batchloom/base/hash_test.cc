// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/hash.h"

#include <gtest/gtest.h>
#include <isa-l/crc.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>

#include <array>
#include <climits>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace batchloom {
namespace {

ByteSpan span_of(const std::vector<std::uint8_t>& bytes) {
  return std::as_bytes(std::span(bytes));
}

/// The definition: reflected polynomial 0x82f63b78, one bit at a time.
std::uint32_t crc32c_by_definition(ByteSpan bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~crc;
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0})), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0xff})), 0x62a8ab43u);
}

#ifdef __x86_64__
/// What lies in the second 16 bytes of the vector registers, all bits in one. Precondition: AVX.
std::uint64_t upper_bits() {
  std::array<std::uint64_t, 8> halves = {1, 1, 1, 1, 1, 1, 1, 1};
  asm volatile(
      "vextractf128 $1, %%ymm0, (%0)\n\t"
      "vextractf128 $1, %%ymm1, 16(%0)\n\t"
      "vextractf128 $1, %%ymm4, 32(%0)\n\t"
      "vextractf128 $1, %%ymm7, 48(%0)"
      :
      : "r"(halves.data())
      : "memory");
  return std::accumulate(halves.begin(), halves.end(), std::uint64_t{0}, std::bit_or<>());
}

/// Whether what ISA-L takes for this CPU leaves anything there by itself. Precondition: AVX.
bool library_leaves_bits(Bytes bytes) {
  asm volatile("vzeroupper" : : : "memory");
  crc32_iscsi(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()), 0);
  return upper_bits() != 0;
}

TEST(Crc32c, LeavesNothingInWideRegisters) {
  if (!__builtin_cpu_supports("avx")) GTEST_SKIP() << "this CPU has none";
  const Bytes bytes(4096, std::byte{0xa5});
  if (!library_leaves_bits(bytes)) {
    GTEST_SKIP() << "ISA-L's CRC for this CPU leaves nothing there (that for AVX-512 does)";
  }
  const std::uint32_t crc = crc32c(bytes);
  const std::uint64_t left = upper_bits();
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(crc, crc32c_by_definition(bytes));
}
#endif

RC_GTEST_PROP(Crc32c, IsItsDefinition, (std::vector<std::uint8_t> bytes)) {
  RC_ASSERT(crc32c(span_of(bytes)) == crc32c_by_definition(span_of(bytes)));
}

RC_GTEST_PROP(Crc32c, ContinuesFromASeed, (std::vector<std::uint8_t> bytes)) {
  const ByteSpan whole = span_of(bytes);
  const auto cut = *rc::gen::inRange<std::size_t>(0, whole.size() + 1);
  RC_ASSERT(crc32c(whole.subspan(cut), crc32c(whole.first(cut))) == crc32c(whole));
}

TEST(Crc32c, InputsLargerThanAnIntCounts) {
  // Untouched anonymous memory is the kernel's zero page: this costs addresses, not memory.
  constexpr std::size_t kSizeBytes = std::size_t{INT_MAX} + 4097;
  void* memory = mmap(nullptr, kSizeBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const ByteSpan zeros(static_cast<const std::byte*>(memory), kSizeBytes);
  // From the matrix of one zero bit, raised to the power of the bits by squaring.
  EXPECT_EQ(crc32c(zeros), 0xa8a14aa4u);
  munmap(memory, kSizeBytes);
}

TEST(Xxh3, KnownValues) {
  EXPECT_EQ(xxh3_64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(xxh3_64(as_bytes("a")), 0xe6c632b61e964e1fu);
  EXPECT_EQ(xxh3_64(as_bytes("abc")), 0x78af5f94892f3950u);
}

RC_GTEST_PROP(Digest, IsTheHashOfWhatWasAdded, (std::vector<std::vector<std::uint8_t>> parts)) {
  Digest digest;
  std::vector<std::uint8_t> all;
  for (const auto& part : parts) {
    digest.add(span_of(part));
    all.insert(all.end(), part.begin(), part.end());
  }
  RC_ASSERT(digest.value() == xxh3_64(span_of(all)));
}

TEST(Digest, FeedsIntegersLittleEndian) {
  Digest digest;
  digest.add_int<std::uint32_t>(0x04030201);
  digest.add_int<std::uint8_t>(5);
  EXPECT_EQ(digest.value(), xxh3_64(as_bytes("\x01\x02\x03\x04\x05")));
}

TEST(Xxh3, Has128BitsToo) {
  EXPECT_EQ(xxh3_128({}).to_string(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(xxh3_128(as_bytes("abc")).to_string(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Digest, TextCarriesItsLength) {
  Digest one;
  one.add_text("ab");
  one.add_text("c");
  Digest other;
  other.add_text("a");
  other.add_text("bc");
  EXPECT_NE(one.value(), other.value());
}

TEST(Digest, GoesOnAfterAMove) {
  Digest digest;
  digest.add(as_bytes("a"));
  Digest moved = std::move(digest);
  moved.add(as_bytes("bc"));
  EXPECT_EQ(moved.value(), 0x78af5f94892f3950u);
  EXPECT_EQ(moved.value(), 0x78af5f94892f3950u) << "value() changes nothing";
}

TEST(Mix64, IsSplitmix64) {
  // The first output of splitmix64 with seed 0.
  EXPECT_EQ(mix64(0x9e3779b97f4a7c15), 0xe220a8397b1dcdafu);
}

}  // namespace
}  // namespace batchloom
