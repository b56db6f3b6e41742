// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_chart.h"

#include <gtest/gtest.h>

#include <limits>

namespace batchloom::cli {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(SvgChart, ABarForEachValueThatThereIs) {
  const BarChart chart = {.title = "a < b & \"c\"",
                          .y_label = "seconds",
                          .groups = {"256K", "2M"},
                          .series = {{"slow", {1.0, 3.0}},
                                     {"fast", {0.5, -1}},
                                     {"none", {std::numeric_limits<double>::quiet_NaN()}}}};
  const std::string svg = draw_bars(chart);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_TRUE(svg.find("a &lt; b &amp; &quot;c&quot;") != std::string::npos);
  EXPECT_EQ(count_of(svg, "<rect "), 1u + 3u + 3u) << "background, bars, legend";
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  // The axis ends at 5: three fifths of 360 pixels.
  EXPECT_TRUE(svg.find("height=\"216.00\"") != std::string::npos);
  EXPECT_EQ(svg, draw_bars(chart));
}

TEST(SvgChart, NothingIsDrawnOfNothing) {
  EXPECT_EQ(count_of(draw_bars({}), "<rect "), 1u);
  EXPECT_EQ(count_of(draw_timeline({}), "<rect "), 1u + 1u + 3u);
}

TEST(SvgChart, SpansLieWhereTheyBelong) {
  const std::string svg = draw_timeline({.title = "t",
                                         .x_label = "ms",
                                         .y_label = "rank",
                                         .rows = 10,
                                         .end = 8,
                                         .spans = {{2, Activity::kBackward, 2, 4}}});
  // A quarter of 720 pixels, after another; the third of ten rows in 240 pixels.
  EXPECT_TRUE(svg.find("<rect x=\"260.00\" y=\"88.00\" width=\"180.00\" height=\"21.60\" "
                       "fill=\"#0072b2\"/>") != std::string::npos)
      << svg;
}

TEST(SvgChart, RoundNumbers) {
  EXPECT_EQ(round_up(3), 5);
  EXPECT_EQ(round_up(5), 5);
  EXPECT_EQ(round_up(5.1), 10);
  EXPECT_EQ(round_up(120), 200);
  EXPECT_DOUBLE_EQ(round_up(0.011), 0.02);
  EXPECT_EQ(round_up(0), 1);
}

}  // namespace
}  // namespace batchloom::cli
