// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/toml_text.h"

#include <gmock/gmock.h>

#include <cmath>

namespace batchloom::planning {
namespace {

using testing::HasSubstr;

TEST(TomlText, NumbersOfWeightsAreExact) {
  EXPECT_EQ(toml_number(Weight(0)), "0");
  EXPECT_EQ(toml_number(Weight(1)), "0.000000001");
  EXPECT_EQ(toml_number(Weight(2'500'000'000)), "2.5");
  EXPECT_EQ(toml_number(kMaxWeight), "100000");
  for (const std::uint64_t weight : {0UL, 1UL, 400'000'000UL, 99'999'999'999'999UL}) {
    EXPECT_EQ(*weight_of_number(std::stod(toml_number(Weight(weight)))), Weight(weight));
  }
}

TEST(TomlText, NumbersThatAreNoWeightsAreRefused) {
  for (const double number : {-0.5, 100'000.5, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(weight_of_number(number).status().to_string(), HasSubstr("not within 0 to"));
  }
  EXPECT_THAT(weight_of_number(1e-10).status().to_string(), HasSubstr("less than a billionth"));
}

TEST(TomlText, QuotesWhatTomlWouldMisread) {
  EXPECT_EQ(toml_quoted("a \"b\\\n\x7f ä"), "\"a \\\"b\\\\\\u000A\\u007F ä\"");
}

}  // namespace
}  // namespace batchloom::planning
