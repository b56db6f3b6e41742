// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/timings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>

namespace batchloom::planning {
namespace {

constexpr std::array<std::string_view, 4> kColumns = {"kind", "tokens", "forward_ms",
                                                      "backward_ms"};
constexpr std::string_view kHeading = "kind,tokens,forward_ms,backward_ms";
constexpr std::size_t kDecimals = 9;  // Of a millisecond in picoseconds.
constexpr std::uint64_t kPsPerMs = 1'000'000'000;

using Fields = std::array<std::string_view, kColumns.size()>;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

/// What stands before the next `separator`; takes both off `text`.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view before = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(before.size() + 1, text.size()));
  return before;
}

std::optional<std::uint64_t> parse_whole(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

/// Milliseconds like "12" or "0.0335", in picoseconds.
std::optional<std::uint64_t> parse_ms(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_whole(text.substr(0, point));
  if (!whole || *whole > kTimingMaxMs) return std::nullopt;
  const std::string_view decimals = text.substr(std::min(point + 1, text.size()));
  if (decimals.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::uint64_t fraction_ps = 0;
  for (std::size_t i = 0; i < kDecimals; ++i) {
    const char digit = i < decimals.size() ? decimals[i] : '0';
    fraction_ps = fraction_ps * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  const bool up = decimals.size() > kDecimals && decimals[kDecimals] >= '5';
  const std::uint64_t ps = *whole * kPsPerMs + fraction_ps + (up ? 1 : 0);
  if (ps > kTimingMaxMs * kPsPerMs) return std::nullopt;
  return ps;
}

std::optional<TimedPart> part_called(std::string_view name) {
  for (const TimedPart part : kTimedParts) {
    if (to_string(part) == name) return part;
  }
  return std::nullopt;
}

Result<Fields> split_row(std::string_view row, std::uint32_t line) {
  const auto found = static_cast<std::size_t>(std::ranges::count(row, ',')) + 1;
  if (found != kColumns.size()) {
    return Status::invalid(fmt::format("timings: line {} has {} columns instead of the {} of '{}'",
                                       line, found, kColumns.size(), kHeading));
  }
  Fields fields;
  for (std::string_view& field : fields) field = trimmed(take_until(row, ','));
  return fields;
}

Status wrong_field(std::uint32_t line, std::size_t column, std::string_view field,
                   std::string_view why) {
  return Status::invalid(
      fmt::format("timings: line {}, column {}: '{}' is {}", line, kColumns[column], field, why));
}

Result<Timing> parse_row(std::string_view row, std::uint32_t line) {
  BL_ASSIGN_OR_RETURN(const Fields fields, split_row(row, line));
  const auto part = part_called(fields[0]);
  if (!part) return wrong_field(line, 0, fields[0], "none of attention, linear and encoder");
  const auto tokens = parse_whole(fields[1]);
  if (!tokens || *tokens == 0 || *tokens > std::numeric_limits<std::uint32_t>::max()) {
    return wrong_field(line, 1, fields[1], "no whole number from 1 to 4294967295");
  }
  constexpr std::string_view kNoTime = "no plain decimal number of milliseconds up to 10000000";
  const auto forward_ps = parse_ms(fields[2]);
  if (!forward_ps) return wrong_field(line, 2, fields[2], kNoTime);
  if (*forward_ps == 0) return wrong_field(line, 2, fields[2], "no time; forward takes some");
  const auto backward_ps = parse_ms(fields[3]);
  if (!backward_ps) return wrong_field(line, 3, fields[3], kNoTime);
  return Timing{*part, static_cast<std::uint32_t>(*tokens), *forward_ps, *backward_ps, line};
}

/// Whether a row is the heading, spaces aside.
bool is_heading(std::string_view row, std::uint32_t line) {
  const Result<Fields> fields = split_row(row, line);
  return fields.is_ok() && *fields == kColumns;
}

}  // namespace

std::string_view to_string(TimedPart part) {
  switch (part) {
    case TimedPart::kAttention: return "attention";
    case TimedPart::kLinear: return "linear";
    case TimedPart::kEncoder: return "encoder";
  }
  return "unknown";
}

Result<std::vector<Timing>> parse_timings(std::string_view csv) {
  std::vector<Timing> timings;
  bool headed = false;
  for (std::uint32_t line = 1; !csv.empty(); ++line) {
    const std::string_view row = trimmed(take_until(csv, '\n'));
    if (row.empty() || row.front() == '#') continue;
    if (headed) {
      BL_ASSIGN_OR_RETURN(Timing timing, parse_row(row, line));
      timings.push_back(timing);
      continue;
    }
    if (!is_heading(row, line)) {
      return Status::invalid(
          fmt::format("timings: line {} is not the heading '{}'", line, kHeading));
    }
    headed = true;
  }
  if (!headed) {
    return Status::invalid(fmt::format("timings: no line; the first is '{}'", kHeading));
  }
  if (timings.empty()) return Status::invalid("timings: no row below the heading");
  return timings;
}

}  // namespace batchloom::planning
