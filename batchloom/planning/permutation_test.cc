// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/permutation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace batchloom::planning {
namespace {

PermutationKey pass_key(std::uint64_t seed, std::uint32_t source = 0, std::uint32_t epoch = 0) {
  return {seed, model::SourceId(source), model::Epoch(epoch)};
}

std::vector<std::uint64_t> order_of(const PermutationKey& key, std::uint64_t records) {
  const Permutation permutation(key, records);
  std::vector<std::uint64_t> out;
  for (std::uint64_t place = 0; place < records; ++place) {
    out.push_back(permutation.at(place).value);
  }
  return out;
}

bool is_bijection(const PermutationKey& key, std::uint64_t records) {
  const Permutation permutation(key, records);
  std::vector<bool> seen(records);
  for (std::uint64_t place = 0; place < records; ++place) {
    const std::uint64_t record = permutation.at(place).value;
    if (record >= records || seen[record]) return false;
    seen[record] = true;
  }
  return true;
}

TEST(Permutation, IsABijectionAtEverySmallSize) {
  for (std::uint64_t records = 0; records <= 5'000; ++records) {
    ASSERT_TRUE(is_bijection(pass_key(records / 7), records)) << records;
  }
}

/// Cycle walking from two places cannot end in one, if the network does not lose anything.
RC_GTEST_PROP(Permutation, LosesNothingAtLargeSizes, (std::uint64_t seed)) {
  const int bits = *rc::gen::inRange(13, 65);
  const std::uint64_t most = bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t records = most - *rc::gen::inRange<std::uint64_t>(0, most / 2);
  const Permutation permutation(pass_key(seed), records);
  const std::uint64_t first = *rc::gen::inRange<std::uint64_t>(0, records - 500);
  std::set<std::uint64_t> seen;
  for (std::uint64_t place = first; place < first + 500; ++place) {
    const std::uint64_t record = permutation.at(place).value;
    RC_ASSERT(record < records);
    RC_ASSERT(seen.insert(record).second);
  }
}

TEST(Permutation, DiffersBySeedSourceAndEpoch) {
  constexpr std::uint64_t kRecords = 1'000;
  const std::vector keys = {pass_key(1),       pass_key(2),       pass_key(1, 1),
                            pass_key(1, 0, 1), pass_key(1, 1, 1), pass_key(std::uint64_t{1} << 63)};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = i + 1; j < keys.size(); ++j) {
      const auto a = order_of(keys[i], kRecords);
      const auto b = order_of(keys[j], kRecords);
      std::size_t equal = 0;
      for (std::size_t place = 0; place < kRecords; ++place) equal += a[place] == b[place];
      EXPECT_LT(equal, 10U) << i << " and " << j << ": one place in a thousand by chance";
    }
  }
}

/// Each record comes to each place equally often, within five standard deviations.
TEST(Permutation, IsUniform) {
  constexpr std::uint64_t kKeys = 20'000;
  for (const std::uint64_t records : {2U, 5U, 21U, 33U}) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> counts;
    for (std::uint64_t seed = 0; seed < kKeys; ++seed) {
      const auto of = order_of(pass_key(seed), records);
      for (std::uint64_t place = 0; place < records; ++place) ++counts[{place, of[place]}];
    }
    const std::uint64_t mean = kKeys / records;
    for (const auto& [place_and_record, count] : counts) {
      const std::uint64_t off = count > mean ? count - mean : mean - count;
      EXPECT_LT(off * off, 25 * mean) << records << " records";
    }
  }
}

/// What follows has no rank correlation with its place: no stretch of records stays together.
TEST(Permutation, TearsNeighboursApart) {
  constexpr std::uint64_t kRecords = 100'000;
  const auto of = order_of(pass_key(3), kRecords);
  std::uint64_t near = 0;
  for (std::size_t i = 1; i < of.size(); ++i) {
    near += std::max(of[i], of[i - 1]) - std::min(of[i], of[i - 1]) < kRecords / 100;
  }
  EXPECT_GT(near, 1'700U) << "2 % by chance";
  EXPECT_LT(near, 2'300U);
}

/// Fixed for ever: streams that exist would change.
TEST(Permutation, IsTheSameEverywhere) {
  EXPECT_EQ(order_of(pass_key(17, 3, 2), 12),
            (std::vector<std::uint64_t>{4, 7, 9, 10, 11, 6, 2, 0, 3, 8, 1, 5}));
  EXPECT_EQ(Permutation(pass_key(17, 3, 2), 1'000'000'000'000).at(123'456'789).value,
            546'332'119'975U);
}

}  // namespace
}  // namespace batchloom::planning
