// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

namespace batchloom::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MetricsText, IsReadByNameAndLabel) {
  const Scrape scrape = Scrape::parse(
                            "# HELP a What it is.\n# TYPE a counter\n"
                            "a 12\r\n"
                            "\n"
                            "b{source=\"docs\",other=\"\"} 1.5e3 1700000000\r\n"
                            "b{ source = \"a \\\"b\\\"\\\\\\nc}\", } -2\n"
                            "inf +Inf\nnan NaN")
                            .value();
  EXPECT_EQ(scrape.find("a"), 12);
  EXPECT_EQ(scrape.find("b", "source", "docs"), 1500);
  EXPECT_EQ(scrape.find("b", "source", "a \"b\"\\\nc}"), -2);
  EXPECT_THAT(scrape.labels("b", "source"), ElementsAre("docs", "a \"b\"\\\nc}"));
  EXPECT_THAT(scrape.labels("b", "other"), ElementsAre("", ""));
  EXPECT_EQ(scrape.sum("b"), 1498);
  EXPECT_TRUE(std::isinf(scrape.get("inf")));
  EXPECT_TRUE(std::isnan(scrape.get("nan")));
}

TEST(MetricsText, WhatIsNotThereIsAbsent) {
  const Scrape scrape = Scrape::parse("b{source=\"docs\"} 1\n").value();
  EXPECT_EQ(scrape.find("a"), std::nullopt);
  EXPECT_EQ(scrape.find("a", "source", "docs"), std::nullopt);
  EXPECT_EQ(scrape.find("b", "source", "code"), std::nullopt);
  EXPECT_EQ(scrape.find("b", "sources", "docs"), std::nullopt);
  EXPECT_EQ(scrape.get("a"), 0);
  EXPECT_EQ(scrape.sum("a"), 0);
  EXPECT_TRUE(scrape.labels("a", "source").empty());
  EXPECT_TRUE(Scrape::parse("").is_ok());
}

TEST(MetricsText, AllElseIsRefusedByLine) {
  for (const std::string_view text :
       {"<html>\n", "a\n", "a x\n", "a 1x\n", "a{b} 1\n", "a{b=\"c} 1\n", "a{b=\"c\" 1\n",
        "a{=\"c\"} 1\n", "{b=\"c\"} 1\n", "a{b=c} 1\n", "a{b\"c\"} 1\n", "a{b=\"c\"d=\"e\"} 1\n"}) {
    const auto scrape = Scrape::parse("ok 1\n" + std::string(text));
    ASSERT_TRUE(scrape.is(ErrorKind::kCorruption)) << text;
    EXPECT_THAT(scrape.status().to_string(), HasSubstr("line 2 is no metric: ")) << text;
  }
}

}  // namespace
}  // namespace batchloom::cli
