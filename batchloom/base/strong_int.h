// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace batchloom {

/// An integer that cannot be mixed up with another one: `using Step = StrongInt<struct StepTag>;`.
/// Ordered, hashable by `.value`, and movable along its own axis with `+ n`, `- n` and `++`; the
/// distance of two is a plain integer. Immutable semantics of a value type.
template <class Tag, class Rep = std::uint64_t>
struct StrongInt {
  Rep value = 0;

  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep v) : value(v) {}

  friend constexpr auto operator<=>(StrongInt, StrongInt) = default;

  constexpr StrongInt operator+(Rep n) const { return StrongInt(static_cast<Rep>(value + n)); }
  constexpr StrongInt operator-(Rep n) const { return StrongInt(static_cast<Rep>(value - n)); }
  constexpr Rep operator-(StrongInt other) const { return static_cast<Rep>(value - other.value); }
  constexpr StrongInt& operator++() {
    ++value;
    return *this;
  }
};

}  // namespace batchloom
