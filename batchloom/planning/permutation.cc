// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"
#include "batchloom/base/random.h"

namespace batchloom::planning {
namespace {

constexpr int kLeastBits = 6;

std::uint64_t low_mask(int bits) {
  return (std::uint64_t{1} << bits) - 1;
}

}  // namespace

Permutation::Permutation(const PermutationKey& key, std::uint64_t records) : records_(records) {
  const int bits =
      std::max(kLeastBits, records == 0 ? 0 : static_cast<int>(std::bit_width(records - 1)));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  const std::uint64_t pass = std::uint64_t{key.source.value} << 32 | key.epoch.value;
  Random random(mix64(key.seed) ^ mix64(~pass));
  for (std::uint64_t& round_key : keys_) round_key = random.next();
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  int low_bits = low_bits_;
  int high_bits = high_bits_;
  std::uint64_t low = value & low_mask(low_bits);
  std::uint64_t high = value >> low_bits;
  for (const std::uint64_t key : keys_) {
    high ^= mix64(low ^ key) & low_mask(high_bits);
    std::swap(low, high);
    std::swap(low_bits, high_bits);
  }
  return high << low_bits | low;
}

model::RecordIndex Permutation::at(std::uint64_t place) const {
  BL_CHECK(place < records_, "a place outside of the permutation");
  std::uint64_t value = encrypt(place);
  while (value >= records_) value = encrypt(value);
  return model::RecordIndex(value);
}

}  // namespace batchloom::planning
