// SPDX-License-Identifier: Apache-2.0
// Metrics as values, before anybody writes them down as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace batchloom::cli {

enum class MetricKind : std::uint8_t {
  kCounter,  ///< Only grows while a process lives.
  kGauge,
};

/// One value, and the label that tells it from others of its family, if there is one.
struct MetricValue {
  std::string label;  ///< Its name; empty: none.
  std::string of;     ///< The label's value: any UTF-8.
  double value = 0;

  friend bool operator==(const MetricValue&, const MetricValue&) = default;
};

/// As Prometheus understands the word: values of one name.
struct MetricFamily {
  std::string name;
  std::string help;  ///< One line.
  MetricKind kind = MetricKind::kGauge;
  std::vector<MetricValue> values = {};

  friend bool operator==(const MetricFamily&, const MetricFamily&) = default;
};

}  // namespace batchloom::cli
