// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/timings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace batchloom::planning {
namespace {

const std::string kHead = "kind,tokens,forward_ms,backward_ms\n";

TEST(Timings, RowsAreReadInTheirOrder) {
  const auto timings = parse_timings(
      "# one H200\n\n kind , tokens, forward_ms,backward_ms\r\n"
      "linear,512,0.36473599076271057,1.4519\r\n"
      "  # again\n"
      "attention, 4096 ,12,0\n"
      "encoder,256,.5,1.");
  ASSERT_TRUE(timings.is(ErrorKind::kInvalid)) << "a digit comes before the point";
  const auto good = parse_timings(
      "# one H200\n\n kind , tokens, forward_ms,backward_ms\r\n"
      "linear,512,0.36473599076271057,1.4519\r\n"
      "  # again\n"
      "attention, 4096 ,12,0\n"
      "encoder,4294967295,10000000,1.");
  EXPECT_EQ(good.value(),
            (std::vector<Timing>{
                {TimedPart::kLinear, 512, 364'735'991, 1'451'900'000, 4},
                {TimedPart::kAttention, 4096, 12'000'000'000, 0, 6},
                {TimedPart::kEncoder, 4294967295, 10'000'000'000'000'000, 1'000'000'000, 7},
            }));
  EXPECT_EQ(good.value()[0].both_ps(), 1'816'635'991u);
}

TEST(Timings, DecimalsAreRoundedToPicoseconds) {
  const auto timings = parse_timings(kHead +
                                     "linear,1,0.0000000004,0.0000000005\n"
                                     "linear,1,0.000000001,0.9999999996\n");
  ASSERT_TRUE(timings.is(ErrorKind::kInvalid)) << "that is no forward time";
  const auto good = parse_timings(kHead + "linear,1,0.0000000005,0.00000000049\n" +
                                  "linear,1,0.000000001,0.9999999996\n");
  EXPECT_EQ(good.value()[0].forward_ps, 1u);
  EXPECT_EQ(good.value()[0].backward_ps, 0u);
  EXPECT_EQ(good.value()[1].forward_ps, 1u);
  EXPECT_EQ(good.value()[1].backward_ps, 1'000'000'000u);
}

TEST(Timings, WhatIsRefusedIsNamedByLineAndColumn) {
  const std::string no_time = "is no plain decimal number of milliseconds up to 10000000";
  const std::pair<std::string, std::string> cases[] = {
      {"", "no line; the first is 'kind,tokens,forward_ms,backward_ms'"},
      {"# nothing\n\n", "no line"},
      {kHead, "no row below the heading"},
      {"\nlinear,1,1,1\n", "line 2 is not the heading 'kind,tokens,forward_ms,backward_ms'"},
      {"kind,tokens,backward_ms,forward_ms\nlinear,1,1,1\n", "line 1 is not the heading"},
      {kHead + "linear,1,1\n", "line 2 has 3 columns instead of the 4 of 'kind,"},
      {kHead + "linear,1,1,1\n\nlinear,1,1,1,\n", "line 4 has 5 columns"},
      {kHead + "mlp,1,1,1\n",
       "line 2, column kind: 'mlp' is none of attention, linear and encoder"},
      {kHead + ",1,1,1\n", "line 2, column kind: ''"},
      {kHead + "linear,,1,1\n", "line 2, column tokens: '' is no whole number from 1"},
      {kHead + "linear,0,1,1\n", "line 2, column tokens: '0'"},
      {kHead + "linear,4294967296,1,1\n", "column tokens: '4294967296'"},
      {kHead + "linear,4k,1,1\n", "column tokens: '4k'"},
      {kHead + "linear,1,-1,1\n", "line 2, column forward_ms: '-1' " + no_time},
      {kHead + "linear,1,1e-3,1\n", "column forward_ms: '1e-3' " + no_time},
      {kHead + "linear,1,1.5e3,1\n", "column forward_ms: '1.5e3' " + no_time},
      {kHead + "linear,1,1.-5,1\n", "column forward_ms: '1.-5' " + no_time},
      {kHead + "linear,1,nan,1\n", "column forward_ms: 'nan' " + no_time},
      {kHead + "linear,1,10000001,1\n", "column forward_ms: '10000001' " + no_time},
      {kHead + "linear,1,18446744074,1\n", "column forward_ms: '18446744074' " + no_time},
      {kHead + "linear,1,10000000.1,1\n", "column forward_ms: '10000000.1' " + no_time},
      {kHead + "linear,1,0.0,1\n", "column forward_ms: '0.0' is no time; forward takes some"},
      {kHead + "linear,1,1,1\nlinear,1,1,x\n", "line 3, column backward_ms: 'x' " + no_time},
      {kHead + "linear,1,1,\n", "line 2, column backward_ms: '' " + no_time},
  };
  for (const auto& [csv, message] : cases) {
    const Status status = parse_timings(csv).status();
    ASSERT_TRUE(status.is(ErrorKind::kInvalid)) << csv;
    EXPECT_NE(status.message().find(message), std::string::npos)
        << status.to_string() << " instead of " << message;
  }
}

/// Picoseconds as milliseconds with every decimal.
std::string in_ms(std::uint64_t ps) {
  return fmt::format("{}.{:09}", ps / 1'000'000'000, ps % 1'000'000'000);
}

RC_GTEST_PROP(Timings, TextRoundTrips, ()) {
  const std::uint32_t rows = *rc::gen::inRange(1u, 20u);
  std::string csv = kHead;
  std::vector<Timing> expected;
  for (std::uint32_t i = 0; i < rows; ++i) {
    const Timing timing{.part = *rc::gen::elementOf(kTimedParts),
                        .tokens = *rc::gen::inRange(1u, 0xffffffffu),
                        .forward_ps = *rc::gen::inRange<std::uint64_t>(1, 1ULL << 53),
                        .backward_ps = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 53),
                        .line = i + 2};
    csv += fmt::format("{},{},{},{}\n", to_string(timing.part), timing.tokens,
                       in_ms(timing.forward_ps), in_ms(timing.backward_ps));
    expected.push_back(timing);
  }
  RC_ASSERT(parse_timings(csv).value() == expected);
}

RC_GTEST_PROP(Timings, NoTextBreaksTheReader, (const std::string& text)) {
  for (const std::string& csv : {text, kHead + text, kHead + "linear,1,1," + text}) {
    const auto timings = parse_timings(csv);
    RC_ASSERT(timings.is_ok() || timings.is(ErrorKind::kInvalid));
  }
}

}  // namespace
}  // namespace batchloom::planning
