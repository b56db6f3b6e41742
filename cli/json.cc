// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace batchloom::cli {
namespace {

constexpr std::size_t kHexBytesInText = 8;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD.

/// The length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {  // Neither over-long nor a surrogate.
    const bool second = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {  // Neither over-long nor above U+10FFFF.
    const bool second = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

template <class Value, class Show>
std::string json_list(std::span<const Value> values, Show show) {
  std::string json = "[";
  for (const Value& value : values) json.append(json.size() > 1 ? "," : "").append(show(value));
  return json + "]";
}

/// In a line of name=value pairs, a value with a space in it is quoted.
std::string in_line(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(" \"\n\t") == std::string::npos;
  return plain ? text : json_quote(text);
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      quoted += kReplacement;
    } else if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return quoted + '"';
}

Fields& Fields::add(std::string_view name, std::string_view value) {
  fields_.push_back({.name = std::string(name),
                     .json = json_quote(value),
                     .text = std::string(value),
                     .lines = {},
                     .is_list = false});
  return *this;
}

Fields& Fields::add(std::string_view name, std::uint64_t value) {
  add(name, std::to_string(value));
  fields_.back().json = fields_.back().text;
  return *this;
}

Fields& Fields::add_decimal(std::string_view name, double value, int digits) {
  add(name, fmt::format("{:.{}f}", value, digits));
  fields_.back().json = std::isfinite(value) ? fields_.back().text : "null";
  return *this;
}

Fields& Fields::add_flag(std::string_view name, bool value) {
  add(name, value ? "yes" : "no");
  fields_.back().json = value ? "true" : "false";
  return *this;
}

Fields& Fields::add(std::string_view name, std::span<const std::uint64_t> values) {
  add(name, fmt::format("{}", fmt::join(values, " ")));
  fields_.back().json =
      json_list(values, [](std::uint64_t value) { return std::to_string(value); });
  return *this;
}

Fields& Fields::add(std::string_view name, std::span<const std::string> values) {
  fields_.push_back({.name = std::string(name),
                     .json = json_list(values, json_quote),
                     .text = {},
                     .lines = {values.begin(), values.end()},
                     .is_list = true});
  return *this;
}

Fields& Fields::add(std::string_view name, std::span<const Fields> rows) {
  std::vector<std::string> lines;
  for (const Fields& row : rows) lines.push_back(row.to_line());
  fields_.push_back({.name = std::string(name),
                     .json = json_list(rows, [](const Fields& row) { return row.to_json(); }),
                     .text = {},
                     .lines = std::move(lines),
                     .is_list = true});
  return *this;
}

Fields& Fields::add(std::string_view name, const Fields& group) {
  std::vector<std::string> lines;
  for (const Field& field : group.fields_) {
    lines.push_back(fmt::format("{}: {}", field.name, field.text));
  }
  fields_.push_back({.name = std::string(name),
                     .json = group.to_json(),
                     .text = {},
                     .lines = std::move(lines),
                     .is_list = true});
  return *this;
}

Fields& Fields::add_hex(std::string_view name, ByteSpan bytes) {
  std::string digits;
  for (const std::byte byte : bytes) {
    digits += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  add(name, digits);
  if (bytes.size() > kHexBytesInText) {
    fields_.back().text =
        fmt::format("{}...({}_bytes)", digits.substr(0, 2 * kHexBytesInText), bytes.size());
  }
  return *this;
}

std::string Fields::to_json() const {
  std::string json = "{";
  for (const Field& field : fields_) {
    json += fmt::format("{}{}:{}", json.size() > 1 ? "," : "", json_quote(field.name), field.json);
  }
  return json + "}";
}

std::string Fields::to_text() const {
  std::string text;
  for (const Field& field : fields_) {
    if (!field.is_list) {
      text += fmt::format("{}: {}\n", field.name, field.text);
      continue;
    }
    text += fmt::format("{}: {}\n", field.name, field.lines.size());
    for (const std::string& line : field.lines) text += fmt::format("  {}\n", line);
  }
  return text;
}

std::string Fields::to_line() const {
  std::string line;
  for (const Field& field : fields_) {
    if (field.is_list) continue;
    line += fmt::format("{}{}={}", line.empty() ? "" : " ", field.name, in_line(field.text));
  }
  return line;
}

}  // namespace batchloom::cli
