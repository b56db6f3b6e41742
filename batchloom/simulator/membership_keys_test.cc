// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/membership_keys.h"

#include <gtest/gtest.h>

#include <set>

namespace batchloom::simulator {
namespace {

TEST(MembershipKeys, FollowFromTheirDigestAndDifferInSize) {
  std::set<std::size_t> sizes;
  for (std::uint64_t low = 0; low < 9; ++low) {
    const store::MembershipDigest digest{.high = 0, .low = low};
    EXPECT_EQ(membership_keys(digest), membership_keys(digest));
    sizes.insert(membership_keys(digest).size());
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{0, 30, 60, 90, 120}));
}

}  // namespace
}  // namespace batchloom::simulator
