// SPDX-License-Identifier: Apache-2.0
#include "cli/metrics_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace batchloom::cli {
namespace {

/// A line, from its left to its right:  name{label="value",...} value [time]
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  std::string_view name() {
    const std::size_t end = std::min(rest_.find_first_of("{ \t=,\""), rest_.size());
    return take(end);
  }

  bool labels(std::map<std::string, std::string>& labels) {
    if (!skip('{')) return true;
    while (!skip('}')) {
      const std::string label(name());
      std::string value;
      if (label.empty() || !skip('=') || !quoted(value)) return false;
      labels.emplace(label, std::move(value));
      if (!skip(',') && !rest_.starts_with('}')) return false;
    }
    return true;
  }

  /// A time may follow; nobody asks for it.
  bool value(double& value) {
    skip_spaces();
    const std::string_view word = take(std::min(rest_.find_first_of(" \t"), rest_.size()));
    if (word == "+Inf") return from_text("inf", value);
    return from_text(word, value);
  }

 private:
  static bool from_text(std::string_view word, double& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  void skip_spaces() { take(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  bool skip(char sign) {
    skip_spaces();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool quoted(std::string& value) {
    if (!skip('"')) return false;
    while (!rest_.empty()) {
      char sign = take(1).front();
      if (sign == '"') return true;
      if (sign == '\\' && !rest_.empty()) {
        sign = take(1).front();
        if (sign == 'n') sign = '\n';
      }
      value += sign;
    }
    return false;
  }

  std::string_view rest_;
};

}  // namespace

Result<Scrape> Scrape::parse(std::string_view text) {
  Scrape scrape;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos || line.front() == '#') continue;
    Line parts(line);
    const std::string name(parts.name());
    ScrapedValue value;
    if (name.empty() || !parts.labels(value.labels) || !parts.value(value.value)) {
      constexpr std::size_t kShown = 80;
      return Status::corruption(
          fmt::format("line {} is no metric: '{}'", number, line.substr(0, kShown)));
    }
    scrape.values_[name].push_back(std::move(value));
  }
  return scrape;
}

std::optional<double> Scrape::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.front().value;
}

std::optional<double> Scrape::find(std::string_view name, std::string_view label,
                                   std::string_view of) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  for (const ScrapedValue& value : found->second) {
    const auto is = value.labels.find(std::string(label));
    if (is != value.labels.end() && is->second == of) return value.value;
  }
  return std::nullopt;
}

std::vector<std::string> Scrape::labels(std::string_view name, const std::string& label) const {
  std::vector<std::string> found;
  const auto values = values_.find(name);
  if (values == values_.end()) return found;
  for (const ScrapedValue& value : values->second) {
    const auto is = value.labels.find(label);
    found.push_back(is == value.labels.end() ? std::string() : is->second);
  }
  return found;
}

double Scrape::sum(std::string_view name) const {
  const auto found = values_.find(name);
  double sum = 0;
  if (found == values_.end()) return sum;
  for (const ScrapedValue& value : found->second) sum += value.value;
  return sum;
}

}  // namespace batchloom::cli
