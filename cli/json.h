// SPDX-License-Identifier: Apache-2.0
// Results of a command: written once, shown as text or as JSON with the same fields.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"

namespace batchloom::cli {

/// `text` as a JSON string, quotes included. What is not UTF-8 in it becomes U+FFFD.
std::string json_quote(std::string_view text);

/// Named values in the order they were added. One thread at a time.
class Fields {
 public:
  Fields& add(std::string_view name, std::string_view value);
  Fields& add(std::string_view name, const char* value) {
    return add(name, std::string_view(value));
  }
  Fields& add(std::string_view name, std::same_as<bool> auto value) {
    return add_flag(name, value);
  }
  Fields& add(std::string_view name, std::uint64_t value);
  /// With so many digits after the point. JSON has no word for what is not finite: null.
  Fields& add_decimal(std::string_view name, double value, int digits);
  Fields& add(std::string_view name, std::span<const std::uint64_t> values);
  Fields& add(std::string_view name, std::span<const std::string> values);
  Fields& add(std::string_view name, std::span<const Fields> rows);
  Fields& add(std::string_view name, const Fields& group);
  /// Hexadecimal digits: all in JSON, the first few and the size in text.
  Fields& add_hex(std::string_view name, ByteSpan bytes);

  /// One JSON object on one line, without a line end.
  std::string to_json() const;
  /// "name: value" lines; lists and rows stand indented below their name and count.
  std::string to_text() const;
  /// "name=value name=value", without a line end. Lists are left out: they have no place in a line.
  std::string to_line() const;

 private:
  struct Field {
    std::string name;
    std::string json;
    std::string text;                ///< Empty where there are lines.
    std::vector<std::string> lines;  ///< Of a list.
    bool is_list = false;
  };

  Fields& add_flag(std::string_view name, bool value);

  std::vector<Field> fields_;
};

}  // namespace batchloom::cli
