// SPDX-License-Identifier: Apache-2.0
#include "cli/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace batchloom::cli {
namespace {

// In pixels.
constexpr double kLeft = 80;
constexpr double kTop = 40;
constexpr double kPlotWidth = 720;
constexpr double kBarsHeight = 360;
constexpr double kLegendLine = 20;
constexpr double kTimelineHeightMin = 120;
constexpr double kTimelineHeightMax = 640;
constexpr double kRowHeightMax = 24;
constexpr double kTickOver = 0.005;  // Of rounding.

constexpr int kMostDecimals = 9;
constexpr int kMostTicks = 8;       // Steps of an axis.
constexpr double kRounding = 1e-9;  // Of a step: no tick more or less for that.

// The first eight are told apart by people who see few colours, too (Okabe and Ito).
constexpr std::string_view kColors[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                        "#56b4e9", "#d55e00", "#f0e442", "#000000",
                                        "#999999", "#7f3c8d", "#8c564b", "#bcbd22"};
constexpr std::string_view kActivityColors[] = {"#56b4e9", "#0072b2", "#d55e00"};
constexpr std::string_view kActivityNames[] = {"forward", "backward", "waiting for hops or copies"};

/// Lines of SVG, and the head that they need.
class Svg {
 public:
  Svg(double width, double height, std::string_view title) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height);
    label(width / 2, 24, "middle", title);
  }

  void rect(double x, double y, double width, double height, std::string_view color) {
    text_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y,
        width, height, color);
  }
  void line(double x1, double y1, double x2, double y2, std::string_view color) {
    text_ += fmt::format(
        "<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"{}\"/>\n", x1, y1,
        x2, y2, color);
  }
  /// `anchor`: start, middle or end.
  void label(double x, double y, std::string_view anchor, std::string_view text) {
    text_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", x, y,
                         anchor, escape_xml(text));
  }
  /// Read from below.
  void upward_label(double x, double y, std::string_view text) {
    text_ += fmt::format(
        "<text transform=\"translate({:.2f} {:.2f}) rotate(-90)\" text-anchor=\"middle\">{}"
        "</text>\n",
        x, y, escape_xml(text));
  }
  void legend(double y, std::size_t place, std::string_view color, std::string_view text) {
    const double top = y + static_cast<double>(place) * kLegendLine;
    rect(kLeft, top - 10, 12, 12, color);
    label(kLeft + 18, top, "start", text);
  }
  std::string finish() && { return std::move(text_) + "</svg>\n"; }

 private:
  std::string text_;
};

/// With commas between thousands.
std::string grouped(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, std::clamp(decimals, 0, kMostDecimals));
  std::size_t end = std::min(text.find('.'), text.size());
  for (; end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

bool is_bar(double value) {
  return std::isfinite(value) && value >= 0;
}

void draw_series(const BarChart& chart, double top_value, Svg& svg) {
  const double group_width = kPlotWidth / static_cast<double>(chart.groups.size());
  const double width = 0.8 * group_width / static_cast<double>(chart.series.size());
  for (std::size_t group = 0; group < chart.groups.size(); ++group) {
    const double left = kLeft + (static_cast<double>(group) + 0.1) * group_width;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const std::vector<double>& values = chart.series[i].values;
      if (group >= values.size() || !is_bar(values[group])) continue;
      const double height = values[group] / top_value * kBarsHeight;
      const double x = left + static_cast<double>(i) * width;
      const double y = kTop + kBarsHeight - height;
      svg.rect(x, y, width * 0.92, height, kColors[i % std::size(kColors)]);
      svg.label(x + width * 0.46, y - 4, "middle", figures_text(values[group]));
    }
    svg.label(left + 0.4 * group_width, kTop + kBarsHeight + 18, "middle", chart.groups[group]);
  }
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

Ticks ticks_up_to(double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return {};
  const double least = largest / kMostTicks;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= least * (1 - kRounding)) step = factor * power;
  }
  return {.step = step, .count = static_cast<std::uint32_t>(std::ceil(largest / step - kRounding))};
}

std::string Ticks::text(std::uint32_t tick) const {
  return grouped(at(tick), -static_cast<int>(std::floor(std::log10(step) + kRounding)));
}

std::string figures_text(double value) {
  if (!(value > 0)) return grouped(value, 0);
  return grouped(value, 2 - static_cast<int>(std::floor(std::log10(value))));
}

std::string draw_bars(const BarChart& chart) {
  const double below = kTop + kBarsHeight;
  const double legend = below + 48;
  Svg svg(kLeft + kPlotWidth + 20, legend + static_cast<double>(chart.series.size()) * kLegendLine,
          chart.title);
  double top_value = 0;
  for (const BarSeries& series : chart.series) {
    for (const double value : series.values) {
      if (is_bar(value)) top_value = std::max(top_value, value);
    }
  }
  const Ticks ticks = ticks_up_to(top_value);
  top_value = ticks.at(ticks.count);
  for (std::uint32_t tick = 0; tick <= ticks.count; ++tick) {
    const double y = below - ticks.at(tick) / top_value * kBarsHeight;
    svg.line(kLeft, y, kLeft + kPlotWidth, y, "#dddddd");
    svg.label(kLeft - 6, y + 4, "end", ticks.text(tick));
  }
  svg.upward_label(20, kTop + kBarsHeight / 2, chart.y_label);
  if (!chart.groups.empty() && !chart.series.empty()) draw_series(chart, top_value, svg);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    svg.legend(legend, i, kColors[i % std::size(kColors)], chart.series[i].name);
  }
  return std::move(svg).finish();
}

std::string draw_timeline(const TimelineChart& chart) {
  const double rows = static_cast<double>(std::max(chart.rows, 1U));
  const double plot_height =
      std::clamp(rows * kRowHeightMax, kTimelineHeightMin, kTimelineHeightMax);
  const double row_height = plot_height / rows;
  const double below = kTop + plot_height;
  const double legend = below + 60;
  Svg svg(kLeft + kPlotWidth + 20, legend + std::size(kActivityNames) * kLegendLine, chart.title);
  svg.rect(kLeft, kTop, kPlotWidth, plot_height, "#f4f4f4");
  for (const TimelineSpan& span : chart.spans) {
    const double x = kLeft + span.begin / chart.end * kPlotWidth;
    svg.rect(x, kTop + span.row * row_height, (span.end - span.begin) / chart.end * kPlotWidth,
             row_height * (row_height > 4 ? 0.9 : 1.0),
             kActivityColors[static_cast<std::size_t>(span.activity)]);
  }
  const Ticks ticks = ticks_up_to(chart.end);
  for (std::uint32_t tick = 0; tick <= ticks.count; ++tick) {
    const double x = kLeft + ticks.at(tick) / chart.end * kPlotWidth;
    if (x > kLeft + kPlotWidth + kTickOver) break;  // The axis ends between two ticks.
    svg.line(x, below, x, below + 4, "#666666");
    svg.label(x, below + 16, "middle", ticks.text(tick));
  }
  svg.label(kLeft + kPlotWidth / 2, below + 34, "middle", chart.x_label);
  svg.upward_label(20, kTop + plot_height / 2, chart.y_label);
  for (std::size_t i = 0; i < std::size(kActivityNames); ++i) {
    svg.legend(legend, i, kActivityColors[i], kActivityNames[i]);
  }
  return std::move(svg).finish();
}

}  // namespace batchloom::cli
