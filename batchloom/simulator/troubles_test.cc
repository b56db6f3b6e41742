// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/base/random.h"
#include "batchloom/simulator/store_sim.h"

namespace batchloom::simulator {
namespace {

using objstore::Operation;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Trouble::Kind;

Trouble fault(Operation operation, std::uint64_t ordinal) {
  return {.kind = Kind::kNetwork, .ordinal = 0, .call = {operation, ordinal}};
}

TEST(Troubles, AreSpelledByKindOrOperation) {
  const std::vector<Trouble> all = {
      {.kind = Kind::kCrash, .ordinal = 0}, {.kind = Kind::kSuspension, .ordinal = 12},
      {.kind = Kind::kRival, .ordinal = 3}, fault(Operation::kGet, 17),
      fault(Operation::kHead, 0),           fault(Operation::kPut, UINT64_MAX),
      fault(Operation::kList, 5),           fault(Operation::kRemove, 9)};
  const std::string text =
      "crash:0,suspension:12,rival:3,get:17,head:0,put:18446744073709551615,list:5,remove:9";
  EXPECT_EQ(to_string(all), text);
  EXPECT_EQ(parse_troubles(text).value(), all);
}

TEST(Troubles, NoneIsSpelledAsNothing) {
  EXPECT_EQ(to_string(std::vector<Trouble>()), "");
  EXPECT_THAT(parse_troubles("").value(), IsEmpty());
}

TEST(Troubles, AnyListIsReadBackAsWritten) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<Trouble> troubles(random.below(6));
    for (Trouble& trouble : troubles) {
      const std::uint64_t ordinal = random.next() >> random.below(64);
      const auto kind = static_cast<Kind>(random.below(4));
      trouble = kind == Kind::kNetwork ? fault(objstore::kAllOperations[random.below(5)], ordinal)
                                       : Trouble{.kind = kind, .ordinal = ordinal, .call = {}};
    }
    const auto again = parse_troubles(to_string(troubles));
    ASSERT_TRUE(again.is_ok()) << to_string(troubles);
    ASSERT_EQ(*again, troubles);
  }
}

TEST(Troubles, ABadSpellingIsNamed) {
  for (const std::string bad :
       {"crash", "crash:", "crash:-1", "crash:+1", "crash: 1", "crash:1 ", "crash:1x", "crash:0x1",
        "crash:18446744073709551616", "Crash:1", ":1", "1", "network:put:17", "put:1:2", "copy:0",
        " put:1", "put;1"}) {
    for (const std::string& text : {bad, "rival:0," + bad, bad + ",put:3"}) {
      const auto troubles = parse_troubles(text);
      ASSERT_TRUE(troubles.is(ErrorKind::kInvalid)) << text;
      EXPECT_THAT(std::string(troubles.status().message()), HasSubstr("'" + bad + "' is no fault"));
    }
  }
}

TEST(Troubles, AnEmptyPartIsABadSpelling) {
  for (const char* text : {",", ",put:1", "put:1,,put:2", "put:1,"})
    EXPECT_TRUE(parse_troubles(text).is(ErrorKind::kInvalid)) << text;
}

}  // namespace
}  // namespace batchloom::simulator
