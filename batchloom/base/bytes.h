// SPDX-License-Identifier: Apache-2.0
// Byte buffers and little-endian integers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace batchloom {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;

inline ByteSpan as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Bytes to_bytes(std::string_view text) {
  const ByteSpan view = as_bytes(text);
  return {view.begin(), view.end()};
}

// Byte by byte it would take several times as long.
static_assert(std::endian::native == std::endian::little,
              "stored integers are copied as they lie in memory");

/// Writes `value` little-endian to `out[0 .. sizeof(T))`.
template <class T>
  requires std::is_unsigned_v<T>
void store_le(T value, std::byte* out) {
  std::memcpy(out, &value, sizeof(T));
}

/// Reads a little-endian T from `in[0 .. sizeof(T))`.
template <class T>
  requires std::is_unsigned_v<T>
T load_le(const std::byte* in) {
  T value = 0;
  std::memcpy(&value, in, sizeof(T));
  return value;
}

}  // namespace batchloom
