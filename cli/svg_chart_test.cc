// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_chart.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

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
  // The axis ends at 3: a third of 360 pixels.
  EXPECT_TRUE(svg.find("height=\"120.00\"") != std::string::npos);
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

std::vector<std::string> texts_of(const Ticks& ticks) {
  std::vector<std::string> texts;
  for (std::uint32_t tick = 0; tick <= ticks.count; ++tick) texts.push_back(ticks.text(tick));
  return texts;
}

TEST(SvgChart, TicksAreNumbersThatAPersonWouldChoose) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts_of(ticks_up_to(11'610)),
            (Texts{"0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"}));
  EXPECT_EQ(texts_of(ticks_up_to(1.05)), (Texts{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"}));
  EXPECT_EQ(texts_of(ticks_up_to(4)),
            (Texts{"0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5", "4.0"}));
  EXPECT_EQ(texts_of(ticks_up_to(0.035)),
            (Texts{"0.000", "0.005", "0.010", "0.015", "0.020", "0.025", "0.030", "0.035"}));
  EXPECT_EQ(texts_of(ticks_up_to(1.5e6)).back(), "1,600,000");
  for (const double none : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_EQ(texts_of(ticks_up_to(none)), (Texts{"0", "1"}));
  }
}

RC_GTEST_PROP(SvgChart, TicksReachTheLargestValueAndNoFurther, ()) {
  const double digits = *rc::gen::inRange(1, 100'000);
  const double largest = digits * std::pow(10.0, *rc::gen::inRange(-8, 12));
  const Ticks ticks = ticks_up_to(largest);
  RC_ASSERT(ticks.count >= 3U && ticks.count <= 8U);
  RC_ASSERT(ticks.at(ticks.count) >= largest * (1 - 1e-8));
  RC_ASSERT(ticks.at(ticks.count - 1) < largest);
  const double power = std::pow(10.0, std::floor(std::log10(ticks.step) + 1e-9));
  const double factor = ticks.step / power;
  RC_ASSERT(std::abs(factor - 1) < 1e-9 || std::abs(factor - 2) < 1e-9 ||
            std::abs(factor - 5) < 1e-9);
}

TEST(SvgChart, ValuesHaveThreeFiguresAndNoExponent) {
  EXPECT_EQ(figures_text(11'610.4), "11,610");
  EXPECT_EQ(figures_text(136.36), "136");
  EXPECT_EQ(figures_text(8.175), "8.18");
  EXPECT_EQ(figures_text(0.0123), "0.0123");
  EXPECT_EQ(figures_text(0), "0");
  const std::string svg =
      draw_bars({.title = "t", .y_label = "s", .groups = {"g"}, .series = {{"a", {11'610.4}}}});
  EXPECT_EQ(svg.find("e+"), std::string::npos);
  EXPECT_EQ(count_of(svg, ">12,000</text>"), 1u);
  EXPECT_EQ(count_of(svg, ">11,610</text>"), 1u);
}

TEST(SvgChart, ATimeLineHasRoundTicksUpToItsEnd) {
  const std::string svg = draw_timeline(
      {.title = "t", .x_label = "ms", .y_label = "rank", .rows = 1, .end = 8725, .spans = {}});
  // 8,000 of 8,725 lie at 660.17 of 720 pixels; 10,000 would lie beyond the end.
  EXPECT_TRUE(svg.find("<text x=\"740.17\" y=\"176.00\" text-anchor=\"middle\">8,000</text>") !=
              std::string::npos)
      << svg;
  EXPECT_EQ(svg.find("10,000"), std::string::npos);
}

}  // namespace
}  // namespace batchloom::cli
