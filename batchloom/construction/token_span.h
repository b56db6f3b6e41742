// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "batchloom/base/bytes.h"
#include "batchloom/store/batch_layout.h"

namespace batchloom::construction {

/// The narrowest width that holds every id below `vocab`: what all blocks and batch objects of a
/// stream have.
constexpr store::TokenWidth token_width_for(std::uint32_t vocab) {
  return vocab <= (1U << 16) ? store::TokenWidth::k16 : store::TokenWidth::k32;
}

/// Token ids of either width, little-endian. Borrowed. A value.
class TokenSpan {
 public:
  TokenSpan() = default;
  /// Precondition: as many bytes as a number of ids have.
  TokenSpan(ByteSpan ids, store::TokenWidth width) : ids_(ids), width_(width) {}
  explicit TokenSpan(std::span<const std::uint16_t> ids)
      : TokenSpan(std::as_bytes(ids), store::TokenWidth::k16) {}
  explicit TokenSpan(std::span<const std::uint32_t> ids)
      : TokenSpan(std::as_bytes(ids), store::TokenWidth::k32) {}

  std::size_t size() const { return ids_.size() / store::token_bytes(width_); }
  /// Precondition: `place` below size().
  std::uint32_t operator[](std::size_t place) const {
    const std::byte* id = ids_.data() + place * store::token_bytes(width_);
    return width_ == store::TokenWidth::k16 ? load_le<std::uint16_t>(id)
                                            : load_le<std::uint32_t>(id);
  }
  /// Precondition: they lie within.
  TokenSpan subspan(std::size_t first, std::size_t count) const {
    const std::size_t bytes = store::token_bytes(width_);
    return {ids_.subspan(first * bytes, count * bytes), width_};
  }

  ByteSpan bytes() const { return ids_; }
  store::TokenWidth width() const { return width_; }

 private:
  ByteSpan ids_;
  store::TokenWidth width_ = store::TokenWidth::k32;
};

}  // namespace batchloom::construction
