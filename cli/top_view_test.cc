// SPDX-License-Identifier: Apache-2.0
#include "cli/top_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace batchloom::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kBefore = R"(batchloom_build_info{version="0.1.0"} 1
batchloom_running_seconds 10
batchloom_committed_steps_total 6
batchloom_committed_bytes_total 1048576
batchloom_samples_total 100
batchloom_tokens_total 1000000
batchloom_wait_seconds_total{reason="consumer"} 1
batchloom_wait_seconds_total{reason="sources"} 2
batchloom_source_samples_total{source="docs"} 60
batchloom_source_samples_total{source="chats"} 40
batchloom_source_tokens_total{source="docs"} 700000
batchloom_source_tokens_total{source="chats"} 300000
batchloom_source_load_seconds_total{source="docs"} 1
batchloom_source_wait_seconds_total{source="docs"} 2
batchloom_store_requests_total{operation="get"} 10
batchloom_store_requests_total{operation="put"} 10
)";

constexpr std::string_view kNow = R"(batchloom_build_info{version="0.1.0"} 1
batchloom_running_seconds 12
batchloom_next_step 41
batchloom_wanted_steps 10000
batchloom_committed_steps_total 11
batchloom_committed_bytes_total 11534336
batchloom_samples_total 300
batchloom_tokens_total 4400000
batchloom_lead_steps 12
batchloom_lead_max_steps 32
batchloom_memory_bytes 251658240
batchloom_memory_max_bytes 2147483648
batchloom_imbalance_drawn_ratio 1.812
batchloom_imbalance_planned_ratio 1.018
batchloom_wait_seconds_total{reason="consumer"} 1
batchloom_wait_seconds_total{reason="sources"} 3.22
batchloom_waiting{reason="consumer"} 0
batchloom_waiting{reason="sources"} 1
batchloom_source_samples_total{source="docs"} 160
batchloom_source_samples_total{source="chats"} 140
batchloom_source_tokens_total{source="docs"} 3100000
batchloom_source_tokens_total{source="chats"} 1300000
batchloom_source_read_bytes_total{source="docs"} 10485760
batchloom_source_load_seconds_total{source="docs"} 2.5
batchloom_source_wait_seconds_total{source="docs"} 3.22
batchloom_source_waiting{source="docs"} 1
batchloom_source_waiting{source="chats"} 0
batchloom_source_wanted_ratio{source="docs"} 0.7
batchloom_source_wanted_ratio{source="chats"} 0.3
batchloom_source_drawn_ratio{source="docs"} 0.7048
batchloom_source_drawn_ratio{source="chats"} 0.2952
batchloom_source_passes{source="chats"} 3
batchloom_source_bad_records{source="docs"} 2
batchloom_store_requests_total{operation="get"} 20
batchloom_store_requests_total{operation="put"} 30
batchloom_store_errors_total{operation="put"} 1
batchloom_store_retries_total 4
)";

TopLook look_at(std::string_view now) {
  return {.place = "127.0.0.1:9464", .now = Scrape::parse(now).value()};
}

TopLook two_looks() {
  TopLook both = look_at(kNow);
  both.before = Scrape::parse(kBefore).value();
  both.seconds = 2;
  return both;
}

TEST(TopView, ShowsWhatARunDoes) {
  EXPECT_EQ(top_text(two_looks(), {}), R"(127.0.0.1:9464  batchloom 0.1.0, rates of the last 2.0 s
step        41 of 10000, 2.5 a second
throughput  1.7M tokens/s, 100.0 samples/s, 5.0 MiB/s
lead        12 of 32 steps
imbalance   1.81 as drawn, 1.02 as planned
memory      240.0 MiB of 2048.0 MiB
waited      consumer 0.0%, sources 61.0%
waits for   source docs
store       15.0 requests/s, 1 errors, 4 tried anew

source  wanted  drawn  tokens/s  samples/s  MiB/s  threads  waited  passes  bad
docs     70.0%  70.5%      1.2M       50.0    5.0     0.75   61.0%       0    2
chats    30.0%  29.5%    500.0k       50.0    0.0     0.00    0.0%       3    0
)");
}

TEST(TopView, OneLookHasRatesOfTheWholeRun) {
  const std::string text = top_text(look_at(kNow), {});
  EXPECT_THAT(text, HasSubstr("rates of its 12 s so far\n"));
  EXPECT_THAT(text, HasSubstr("\nthroughput  366.7k tokens/s, 25.0 samples/s, 0.9 MiB/s\n"));
}

TEST(TopView, AnotherRunAtThePortIsNotComparedWithTheOneBefore) {
  TopLook both = look_at(kBefore);
  both.before = Scrape::parse(kNow).value();
  both.seconds = 2;
  EXPECT_EQ(top_text(both, {}), top_text(look_at(kBefore), {}));
}

TEST(TopView, CountsThatWentBackAreNoRates) {
  TopLook both = look_at("batchloom_running_seconds 12\nbatchloom_tokens_total 5\n");
  both.before = Scrape::parse("batchloom_running_seconds 10\nbatchloom_tokens_total 9\n").value();
  both.seconds = 2;
  EXPECT_THAT(top_text(both, {}), HasSubstr("\nthroughput  0.0 tokens/s, "));
}

TEST(TopView, NothingIsWaitedForLongerThanTimePasses) {
  const auto waited = [](double until_s) {
    return fmt::format(
        "batchloom_running_seconds {}\nbatchloom_wait_seconds_total{{reason="
        "\"consumer\"}} {}\n",
        until_s, until_s + 0.01 * (until_s - 10));
  };
  TopLook both = look_at(waited(12));
  both.before = Scrape::parse(waited(10)).value();
  both.seconds = 2;
  EXPECT_THAT(top_text(both, {}), HasSubstr("\nwaited      consumer 100.0%\n"));
}

TEST(TopView, ARunThatHasNotBegunSaysSo) {
  EXPECT_EQ(top_text(look_at("batchloom_build_info{version=\"0.1.0\"} 1\n"), {}),
            "127.0.0.1:9464  batchloom 0.1.0\nits sources are being indexed: it has not begun\n");
}

TEST(TopView, WithoutBoundsItSaysSo) {
  const std::string text =
      top_text(look_at("batchloom_running_seconds 0\nbatchloom_next_step 3\n"), {});
  EXPECT_THAT(text, HasSubstr("\nstep        3, 0.0 a second\n"));
  EXPECT_THAT(text, HasSubstr("\nlead        unlimited\n"));
  EXPECT_THAT(text, HasSubstr("\nwaits for   nothing\n"));
}

TEST(TopView, FitsTheWindow) {
  const std::string text = top_text(two_looks(), {.columns = 20, .lines = 12});
  EXPECT_THAT(text, HasSubstr("\nstep        41 of 10\n"));
  EXPECT_THAT(text, HasSubstr("\nsource  wanted  draw\n... and 2 lines more\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
  EXPECT_EQ(top_text(two_looks(), {.columns = 200, .lines = 13}), top_text(two_looks(), {}));
}

TEST(TopView, NamesCommandNoTerminalAndAreCutBetweenCharacters) {
  const std::string name =
      "a\x1b[2Jb\\nc\xc2\x9b"
      "1mü";
  const TopLook odd = look_at(
      "batchloom_running_seconds 1\n"
      "batchloom_source_tokens_total{source=\"" +
      name + "\"} 5\n");
  const std::string text = top_text(odd, {});
  EXPECT_THAT(text, HasSubstr("\na?[2Jb?c?1mü  "));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(top_text(odd, {.columns = 11}), HasSubstr("\na?[2Jb?c?1m\n"));
  EXPECT_THAT(top_text(odd, {.columns = 12}), HasSubstr("\na?[2Jb?c?1mü\n"));
}

TEST(TopView, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0.0");
  EXPECT_EQ(short_number(999.94), "999.9");
  EXPECT_EQ(short_number(999.96), "1.0k");
  EXPECT_EQ(short_number(1'250'000), "1.2M");
  EXPECT_EQ(short_number(5e18), "5000000.0T");
}

}  // namespace
}  // namespace batchloom::cli
