// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace batchloom::planning {

/// Sorts `rows` by key_of(row), an unsigned integer, ascending; rows of one key keep their order.
/// Radix sort: linear time, and the less the fewer bits keys have. To sort by several keys, sort by
/// the least important first.
template <class KeyOf>
void radix_sort(std::vector<std::uint32_t>& rows, KeyOf key_of) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kDigitValues = std::size_t{1} << kDigitBits;
  std::uint64_t all = 0;
  for (const std::uint32_t row : rows) all |= key_of(row);
  std::vector<std::uint32_t> sorted(rows.size());
  for (int shift = 0; shift < 64 && all >> shift != 0; shift += kDigitBits) {
    const auto digit_of = [&](std::uint32_t row) {
      return static_cast<std::uint64_t>(key_of(row)) >> shift & (kDigitValues - 1);
    };
    std::array<std::uint32_t, kDigitValues> begins{};
    for (const std::uint32_t row : rows) ++begins[digit_of(row)];
    std::uint32_t begin = 0;
    for (std::uint32_t& count : begins) begin += std::exchange(count, begin);
    for (const std::uint32_t row : rows) sorted[begins[digit_of(row)]++] = row;
    rows.swap(sorted);
  }
}

}  // namespace batchloom::planning
