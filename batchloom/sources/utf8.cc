// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/utf8.h"

#include <fmt/format.h>
#include <simdjson.h>

namespace batchloom::sources {

using std::string_view_literals::operator""sv;

bool is_utf8(std::string_view text) {
  return simdjson::validate_utf8(text);
}

std::string_view foreign_encoding(std::string_view start) {
  if (start.starts_with("\xff\xfe\0\0"sv) || start.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (start.starts_with("\xff\xfe"sv) || start.starts_with("\xfe\xff"sv)) return "UTF-16";
  if (start.starts_with("\x1f\x8b"sv)) return "gzip";
  if (start.starts_with("\x28\xb5\x2f\xfd"sv)) return "zstd";
  if (start.size() < 4) return {};
  const auto has = [&](std::size_t i) { return start[i] != '\0'; };
  if (has(0) != has(1) && has(0) == has(2) && has(1) == has(3)) return "UTF-16";
  if (!has(1) && !has(2) && has(0) != has(3)) return "UTF-32";
  return {};
}

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kUtf8Mark)) text.remove_prefix(kUtf8Mark.size());
  return text;
}

std::optional<std::string> text_fault(std::string_view text) {
  const std::string_view encoding = foreign_encoding(text);
  if (encoding.starts_with("UTF")) return fmt::format("in {}; convert it to UTF-8", encoding);
  if (!encoding.empty()) return fmt::format("compressed by {}, and no text", encoding);
  if (!is_utf8(text)) return "not valid UTF-8";
  return std::nullopt;
}

}  // namespace batchloom::sources
