// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/toml_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <vector>

namespace batchloom::planning {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr std::array kOrders = {"random"sv, "file"sv};
constexpr std::array kExhausteds = {"repeat"sv, "stop"sv, "drop"sv, "error"sv};
constexpr std::array kRamps = {"none"sv, "linear"sv, "cosine"sv};

}  // namespace

std::span<const std::string_view> order_names() {
  return kOrders;
}

std::span<const std::string_view> exhausted_names() {
  return kExhausteds;
}

std::span<const std::string_view> ramp_names() {
  return kRamps;
}

std::string toml_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string toml_number(Weight weight) {
  std::string text = fmt::format("{}.{:09}", weight.value / kBillion, weight.value % kBillion);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string toml_weight(const Schedule& schedule) {
  const auto points = schedule.points();
  if (points.size() == 1 && points[0].step.value == 0) return toml_number(points[0].weight);
  std::vector<std::string> texts;
  for (const WeightPoint& point : points) {
    std::string text =
        fmt::format("{{ step = {}, value = {}", point.step.value, toml_number(point.weight));
    if (point.ramp != Ramp::kNone) {
      text += fmt::format(", ramp = \"{}\"", kRamps[static_cast<std::size_t>(point.ramp)]);
    }
    texts.push_back(text + " }");
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

Result<Weight> weight_of_number(double number) {
  constexpr double kMost = static_cast<double>(kMaxWeight.value) / static_cast<double>(kBillion);
  if (!(number >= 0 && number <= kMost)) {
    return Status::invalid(fmt::format("{} is not within 0 to {}", number, kMost));
  }
  const auto billionths =
      static_cast<std::uint64_t>(std::llround(number * static_cast<double>(kBillion)));
  if (billionths == 0 && number > 0) {
    return Status::invalid(fmt::format("{} is less than a billionth, and not 0", number));
  }
  return Weight(billionths);
}

}  // namespace batchloom::planning
