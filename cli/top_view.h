// SPDX-License-Identifier: Apache-2.0
// What `batchloom top` shows, as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cli/metrics_text.h"

namespace batchloom::cli {

/// What a run said of itself, and what it said before, if it did.
struct TopLook {
  std::string place;  ///< Whom it was asked.
  Scrape now;
  std::optional<Scrape> before = {};
  double seconds = 0;  ///< Between both.
};

/// What there is room for; absent: all.
struct TopRoom {
  std::optional<std::size_t> columns = {};
  std::optional<std::size_t> lines = {};
};

/// Lines for people, without control characters whatever sources are called. Rates are of the time
/// since `before`, or of the whole run where that is absent or of an earlier run. Pure.
std::string top_text(const TopLook& look, const TopRoom& room);

/// 12.3, 4.5k, 6.7M, 8.9G.
std::string short_number(double value);

}  // namespace batchloom::cli
