// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace batchloom {

/// A seeded generator for decisions that must be repeatable: the same seed gives the same numbers
/// on every host and compiler. xoshiro256** (Blackman and Vigna 2018), its state filled by
/// splitmix64. Not for secrets. One thread at a time.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  /// 64 uniform bits.
  std::uint64_t next();

  /// A uniform number in [0, n), without bias. Precondition: n > 0.
  std::uint64_t below(std::uint64_t n);

  /// True in `per_mille` of 1,000 cases; always at 1,000 and above, never at 0.
  bool chance(std::uint64_t per_mille) { return below(1000) < per_mille; }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace batchloom
