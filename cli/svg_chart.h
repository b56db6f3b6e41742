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

/// Where the ticks of an axis from 0 lie: at multiples of a step of 1, 2 or 5 times a power of ten.
struct Ticks {
  double step = 1;
  std::uint32_t count = 1;  ///< Of steps from 0; at most 8.

  double at(std::uint32_t tick) const { return step * tick; }
  /// With the decimals that tell ticks apart: "0.25", "12,000".
  std::string text(std::uint32_t tick) const;
};
/// Those from 0 to at least `largest`, as few as that takes; one of 1 where it is 0 or no number.
Ticks ticks_up_to(double largest);

/// Three figures, or all before the point where there are more: "0.0123", "1.06", "11,610".
std::string figures_text(double value);

}  // namespace batchloom::cli
