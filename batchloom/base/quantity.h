// SPDX-License-Identifier: Apache-2.0
// Amounts as people write them on a command line or in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "batchloom/base/runtime.h"

namespace batchloom {

/// A decimal number of digits alone: "17". nullopt for all else, and beyond 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text);

/// Bytes: "4096", "64KiB", "256 MiB", "2GiB", "1TiB". nullopt for all else, and beyond 64 bits.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// A count: "8192", "256K", "2 M", "1G", by powers of 1,024. nullopt for all else, and beyond 64
/// bits.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// A time: "200ms", "5 s", "10min". nullopt for all else, and beyond a year.
std::optional<Duration> parse_duration(std::string_view text);

/// The bytes with the largest unit that leaves them whole, as parse_bytes() reads them: "2 GiB".
std::string bytes_text(std::uint64_t bytes);

}  // namespace batchloom
