// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::planning {

/// What of a layer, or beside the layers, was timed: a curve of CostModel.
enum class TimedPart : std::uint8_t { kAttention, kLinear, kEncoder };
inline constexpr std::array kTimedParts = {TimedPart::kAttention, TimedPart::kLinear,
                                           TimedPart::kEncoder};

/// "attention", "linear" or "encoder".
std::string_view to_string(TimedPart part);

/// One measurement.
struct Timing {
  TimedPart part = TimedPart::kAttention;
  std::uint32_t tokens = 0;  ///< Of the encoder, patches. At least 1.
  std::uint64_t forward_ps = 0;
  std::uint64_t backward_ps = 0;
  std::uint32_t line = 0;  ///< Where it was written, from 1; 0 if nowhere.

  std::uint64_t both_ps() const { return forward_ps + backward_ps; }
  friend bool operator==(const Timing&, const Timing&) = default;
};

/// The longest time that a timing may have, for each phase: 10,000 s.
inline constexpr std::uint64_t kTimingMaxMs = 10'000'000;

/// Reads lines like "attention,4096,0.315,0.934" below a line "kind,tokens,forward_ms,backward_ms".
/// Milliseconds are plain decimals, rounded to picoseconds; forward takes some time. Spaces around
/// a field, empty lines and lines that begin with # do not count. Rows stay in their order.
/// `invalid`: another heading, no row, a row that is not of this form; the message names line and
/// column.
Result<std::vector<Timing>> parse_timings(std::string_view csv);

}  // namespace batchloom::planning
