// SPDX-License-Identifier: Apache-2.0
// Metrics as others' programs write them down: Prometheus' text form.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::cli {

/// One line of a scrape.
struct ScrapedValue {
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// What was read, by name; values in the order in which they came.
class Scrape {
 public:
  /// `corruption`, naming the line, for what is not of that form.
  static Result<Scrape> parse(std::string_view text);

  /// The first value of this name; absent where there is none.
  std::optional<double> find(std::string_view name) const;
  /// The value whose label is this.
  std::optional<double> find(std::string_view name, std::string_view label,
                             std::string_view of) const;
  /// 0 where find() finds nothing.
  double get(std::string_view name) const { return find(name).value_or(0); }
  double get(std::string_view name, std::string_view label, std::string_view of) const {
    return find(name, label, of).value_or(0);
  }
  /// Of all values of this name, in their order: what the label is. "" where one lacks it.
  std::vector<std::string> labels(std::string_view name, const std::string& label) const;
  /// Of all values of this name.
  double sum(std::string_view name) const;

 private:
  std::map<std::string, std::vector<ScrapedValue>, std::less<>> values_;
};

}  // namespace batchloom::cli
