// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/radix_sort.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace batchloom::planning {
namespace {

/// As std::stable_sort orders them. Few bits make equal keys, many make many digits.
RC_GTEST_PROP(RadixSort, IsStable, ()) {
  const auto bits = *rc::gen::inRange(0, 65);
  const std::uint64_t mask = bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  auto keys = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
  for (std::uint64_t& key : keys) key = key * 0x9E3779B97F4A7C15 & mask;
  const auto key_of = [&](std::uint32_t row) { return keys[row]; };
  std::vector<std::uint32_t> rows(keys.size());
  std::iota(rows.rbegin(), rows.rend(), 0U);
  std::vector<std::uint32_t> expected = rows;
  std::ranges::stable_sort(expected, {}, key_of);
  radix_sort(rows, key_of);
  RC_ASSERT(rows == expected);
}

}  // namespace
}  // namespace batchloom::planning
