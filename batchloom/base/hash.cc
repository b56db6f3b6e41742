// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/hash.h"

#include <fmt/format.h>
#include <isa-l/crc.h>
#include <xxhash.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <algorithm>

#include "batchloom/base/check.h"

namespace batchloom {
namespace {

/// ISA-L counts bytes in an int; longer inputs are fed in stretches of this size.
constexpr std::size_t kCrcStretchBytes = std::size_t{1} << 30;

/// ISA-L's CRC for AVX-512 leaves values in the upper parts of the vector registers. Until they are
/// cleared, each SSE instruction of the thread has to keep them: loops over what was just checked
/// take two to four times as long.
#ifdef __x86_64__
[[gnu::target("avx")]] void clear_upper_parts() {
  _mm256_zeroupper();
}
void leave_wide_registers() {
  if (__builtin_cpu_supports("avx")) clear_upper_parts();
}
#else
void leave_wide_registers() {}
#endif

}  // namespace

std::uint32_t crc32c(ByteSpan bytes, std::uint32_t seed) {
  std::uint32_t inverted = ~seed;  // ISA-L leaves both inversions of CRC-32C to its caller.
  while (!bytes.empty()) {
    const ByteSpan stretch = bytes.first(std::min(bytes.size(), kCrcStretchBytes));
    // ISA-L's signature lacks a const; the buffer is only read.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(stretch.data()));
    inverted = crc32_iscsi(data, static_cast<int>(stretch.size()), inverted);
    bytes = bytes.subspan(stretch.size());
  }
  leave_wide_registers();
  return ~inverted;
}

std::uint64_t xxh3_64(ByteSpan bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hash128 xxh3_128(ByteSpan bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

std::string Hash128::to_string() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

struct Digest::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh3{XXH3_createState()};
};

Digest::Digest() : state_(std::make_unique<State>()) {
  BL_CHECK(state_->xxh3 != nullptr, "out of memory");
  XXH3_64bits_reset(state_->xxh3.get());
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(ByteSpan bytes) {
  XXH3_64bits_update(state_->xxh3.get(), bytes.data(), bytes.size());
}

void Digest::add_text(std::string_view text) {
  add_int<std::uint64_t>(text.size());
  add(as_bytes(text));
}

std::uint64_t Digest::value() const {
  return XXH3_64bits_digest(state_->xxh3.get());
}

std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace batchloom
