// SPDX-License-Identifier: Apache-2.0
// Plots as SVG: what a browser shows without any library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace batchloom::cli {

/// What one bar of each group stands for.
struct BarSeries {
  std::string name;
  std::vector<double> values;  ///< By group; one below 0 or not finite is left out.
};

/// Groups of bars beside each other, from 0 upward.
struct BarChart {
  std::string title;
  std::string y_label;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

/// Colours of a time line, by what a rank does; the time between spans is idle.
enum class Activity : std::uint8_t { kForward, kBackward, kWaiting };

struct TimelineSpan {
  std::uint32_t row = 0;
  Activity activity = Activity::kForward;
  double begin = 0;
  double end = 0;
};

/// Rows below each other, each with what it does from left to right.
struct TimelineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::uint32_t rows = 1;
  double end = 1;  ///< Of the axis; above 0.
  std::vector<TimelineSpan> spans;
};

/// A whole document. The same input gives the same bytes.
std::string draw_bars(const BarChart& chart);
std::string draw_timeline(const TimelineChart& chart);

/// For text between tags, and in attributes.
std::string escape_xml(std::string_view text);

/// A round number that is at least `value`, of 1, 2 or 5 times a power of ten; 1 for 0 and below.
double round_up(double value);

}  // namespace batchloom::cli
