// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace batchloom {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size = 1;
};

constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"KiB", std::uint64_t{1} << 10},
                               {"MiB", std::uint64_t{1} << 20},
                               {"GiB", std::uint64_t{1} << 30},
                               {"TiB", std::uint64_t{1} << 40}};
constexpr Unit kCountUnits[] = {
    {"", 1}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", std::uint64_t{1} << 30}};
constexpr Unit kTimeUnits[] = {{"ms", 1'000'000}, {"s", 1'000'000'000}, {"min", 60'000'000'000}};
constexpr std::uint64_t kLongestNs = std::uint64_t{366} * 24 * 3600 * 1'000'000'000;

/// A number and one of `units`, a space between them or none, in units of 1.
std::optional<std::uint64_t> parse_amount(std::string_view text, std::span<const Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = parse_number(text.substr(0, digits));
  if (!count) return std::nullopt;
  std::string_view name = text.substr(digits);
  if (name.size() > 1 && name.front() == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (*count > UINT64_MAX / unit.size) return std::nullopt;
    return *count * unit.size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_amount(text, kByteUnits);
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  return parse_amount(text, kCountUnits);
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto nanoseconds = parse_amount(text, kTimeUnits);
  if (!nanoseconds || *nanoseconds > kLongestNs) return std::nullopt;
  return Duration(static_cast<Duration::rep>(*nanoseconds));
}

std::string bytes_text(std::uint64_t bytes) {
  const Unit* largest = &kByteUnits[1];
  for (const Unit& unit : kByteUnits) {
    if (bytes != 0 && bytes % unit.size == 0) largest = &unit;
  }
  return fmt::format("{} {}", bytes / largest->size, largest->name);
}

}  // namespace batchloom
