// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/safeguards.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace batchloom::store {
namespace {

TEST(Safeguards, HaveNamesThatReadBack) {
  std::set<std::string_view> names;
  for (const Safeguard safeguard : kAllSafeguards) {
    EXPECT_EQ(parse_safeguard(to_string(safeguard)), safeguard);
    names.insert(to_string(safeguard));
  }
  EXPECT_EQ(names.size(), std::size(kAllSafeguards));
  EXPECT_EQ(to_string(Safeguard::kDropRule), "drop-rule");
}

TEST(Safeguards, OtherNamesAreNone) {
  for (const std::string_view name : {"", "drop", "drop-rule ", "DROP-RULE"}) {
    EXPECT_EQ(parse_safeguard(name), std::nullopt) << name;
  }
}

TEST(Safeguards, AllHoldByDefault) {
  const Safeguards safeguards;
  for (const Safeguard safeguard : kAllSafeguards) EXPECT_TRUE(safeguards.hold(safeguard));
}

TEST(Safeguards, OneIsBroken) {
  const Safeguards safeguards{.broken = Safeguard::kFloorCheck, .on_use = {}};
  for (const Safeguard safeguard : kAllSafeguards) {
    EXPECT_EQ(safeguards.hold(safeguard), safeguard != Safeguard::kFloorCheck);
  }
}

TEST(Safeguards, TellWhichWereAsked) {
  std::vector<Safeguard> asked;
  const Safeguards safeguards{.broken = Safeguard::kTermCheck,
                              .on_use = [&](Safeguard one) { asked.push_back(one); }};
  EXPECT_TRUE(safeguards.hold(Safeguard::kDropRule));
  EXPECT_FALSE(safeguards.hold(Safeguard::kTermCheck));
  EXPECT_EQ(asked, (std::vector{Safeguard::kDropRule, Safeguard::kTermCheck}));
}

}  // namespace
}  // namespace batchloom::store
