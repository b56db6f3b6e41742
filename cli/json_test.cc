// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace batchloom::cli {
namespace {

TEST(JsonQuote, EscapesWhatJsonDemands) {
  EXPECT_EQ(json_quote("plain"), R"("plain")");
  EXPECT_EQ(json_quote(""), R"("")");
  EXPECT_EQ(json_quote(R"(a "b" \c)"), R"("a \"b\" \\c")");
  EXPECT_EQ(json_quote(std::string_view("\n\t\x1f\0", 4)), R"("\u000a\u0009\u001f\u0000")");
}

TEST(JsonQuote, KeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(json_quote("gr\u00fc\u00df \u20ac \U0001f600"), "\"gr\u00fc\u00df \u20ac \U0001f600\"");
  EXPECT_EQ(json_quote("a\xff z"), "\"a\ufffd z\"");
  EXPECT_EQ(json_quote("\xc3"), "\"\ufffd\"");                                // Cut off.
  EXPECT_EQ(json_quote("\xc0\x80"), "\"\ufffd\ufffd\"");                      // Over-long.
  EXPECT_EQ(json_quote("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");            // A surrogate.
  EXPECT_EQ(json_quote("\xf4\x90\x80\x80"), "\"\ufffd\ufffd\ufffd\ufffd\"");  // Above U+10FFFF.
}

Fields sample() {
  Fields row;
  row.add("name", "a b").add("bytes", std::uint64_t{3});
  const std::vector<std::string> texts = {"one", "two"};
  const std::vector<std::uint64_t> numbers = {5, 2};
  const std::vector<Fields> rows = {row};
  Fields fields;
  fields.add("step", UINT64_MAX).add("done", true);
  fields.add("numbers", std::span<const std::uint64_t>(numbers));
  fields.add("texts", std::span<const std::string>(texts));
  fields.add("rows", std::span<const Fields>(rows));
  fields.add("group", row);
  fields.add_hex("hex", as_bytes("0123456789"));
  return fields;
}

TEST(Fields, BecomeOneJsonObject) {
  EXPECT_EQ(sample().to_json(),
            R"({"step":18446744073709551615,"done":true,"numbers":[5,2],"texts":["one","two"],)"
            R"("rows":[{"name":"a b","bytes":3}],"group":{"name":"a b","bytes":3},)"
            R"("hex":"30313233343536373839"})");
  EXPECT_EQ(Fields().to_json(), "{}");
}

TEST(Fields, BecomeText) {
  EXPECT_EQ(sample().to_text(),
            "step: 18446744073709551615\n"
            "done: yes\n"
            "numbers: 5 2\n"
            "texts: 2\n  one\n  two\n"
            "rows: 1\n  name=\"a b\" bytes=3\n"
            "group: 2\n  name: a b\n  bytes: 3\n"
            "hex: 3031323334353637...(10_bytes)\n");
}

TEST(Fields, HoldDecimals) {
  Fields fields;
  fields.add_decimal("rate", 12.345, 1)
      .add_decimal("none", std::numeric_limits<double>::infinity(), 3);
  EXPECT_EQ(fields.to_json(), R"({"rate":12.3,"none":null})");
  EXPECT_EQ(fields.to_line().substr(0, 9), "rate=12.3");
}

TEST(Fields, BecomeALine) {
  EXPECT_EQ(sample().to_line(),
            "step=18446744073709551615 done=yes numbers=\"5 2\" hex=3031323334353637...(10_bytes)");
}

}  // namespace
}  // namespace batchloom::cli
