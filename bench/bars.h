// SPDX-License-Identifier: Apache-2.0
// What figures are held to.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace batchloom {

inline constexpr double kAny = std::numeric_limits<double>::infinity();

/// A figure, and what it should be at least and at most.
struct Bar {
  std::string_view figure;
  double at_least = 0;
  double at_most = kAny;
};

/// Says of each on stderr whether it is reached; how many are missed. Precondition: `figures` has
/// them all.
inline int report_bars(std::span<const Bar> bars, const std::map<std::string, double>& figures) {
  int missed = 0;
  for (const Bar& bar : bars) {
    const double value = figures.at(std::string(bar.figure));
    const bool reached = bar.at_least <= value && value <= bar.at_most;
    if (!reached) ++missed;
    fmt::print(stderr, "{}: {:.4g}, should be from {} to {}: {}\n", bar.figure, value, bar.at_least,
               bar.at_most, reached ? "reached" : "MISSED");
  }
  return missed;
}

}  // namespace batchloom
