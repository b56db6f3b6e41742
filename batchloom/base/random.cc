// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/random.h"

#include <bit>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"

namespace batchloom {

Random::Random(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    word = mix64(seed);
  }
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t n) {
  BL_CHECK(n > 0, "Random::below(0)");
  // 2^64 mod n of the 2^64 values are left over at the low end; drawing again there leaves every
  // remainder equally likely.
  const std::uint64_t left_over = (0 - n) % n;
  std::uint64_t bits = next();
  while (bits < left_over) bits = next();
  return bits % n;
}

}  // namespace batchloom
