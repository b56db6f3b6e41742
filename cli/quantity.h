// SPDX-License-Identifier: Apache-2.0
// Amounts as people write them on a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "batchloom/base/runtime.h"

namespace batchloom::cli {

/// A decimal number of digits alone: "17". nullopt for all else, and beyond 64 bits.
std::optional<std::uint64_t> parse_number(std::string_view text);

/// Bytes: "4096", "64KiB", "256MiB", "2GiB". nullopt for all else, and beyond 64 bits.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// Tokens: "8192", "256K", "2M", "1G", by powers of 1,024. nullopt for all else, and beyond 64
/// bits.
std::optional<std::uint64_t> parse_tokens(std::string_view text);

/// A time: "200ms", "5s", "10min". nullopt for all else, and beyond a year.
std::optional<Duration> parse_duration(std::string_view text);

}  // namespace batchloom::cli
