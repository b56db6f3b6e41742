// SPDX-License-Identifier: Apache-2.0
// Checksums and hashes of byte strings. CRC32C guards stored bytes; XXH3 makes digests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "batchloom/base/bytes.h"

namespace batchloom {

/// CRC-32C (Castagnoli) of `bytes`; crc32c("123456789") == 0xe3069283. Pass an earlier result as
/// `seed` to continue it.
std::uint32_t crc32c(ByteSpan bytes, std::uint32_t seed = 0);

/// XXH3, 64 bits, seed 0.
std::uint64_t xxh3_64(ByteSpan bytes);

/// A digest that two texts never share by chance.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  /// 32 lower-case hexadecimal digits.
  std::string to_string() const;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// XXH3, 128 bits, seed 0.
Hash128 xxh3_128(ByteSpan bytes);

/// XXH3-64 over a walk of values: integers are fed little-endian, so that the digest does not
/// depend on a memory layout. One thread at a time.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(ByteSpan bytes);
  /// Feeds the text's length as u64, then its bytes.
  void add_text(std::string_view text);
  template <class T>
    requires std::is_unsigned_v<T>
  void add_int(T value) {
    std::byte buffer[sizeof(T)];
    store_le(value, buffer);
    add(buffer);
  }
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A statistically good 64-bit mix of `x` (splitmix64's finaliser); the same on every host.
std::uint64_t mix64(std::uint64_t x);

}  // namespace batchloom
