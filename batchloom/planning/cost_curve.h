// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/status.h"

namespace batchloom::planning {

/// A measured time.
struct CostPoint {
  std::uint32_t tokens = 0;
  std::uint64_t time_ps = 0;

  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

/// The time that one layer takes for n tokens, through measured points. Integers only, so that it
/// is the same everywhere:
///
///   below the first point   the first point's time: a kernel does not get faster than it starts
///   between two points      n x r(n), r being the time per token, in whole picoseconds,
///                           interpolated linearly in n (of the time itself, that would be up to
///                           11 % off)
///   above the last point    by its growth: time per token, or per token squared, stays
///
/// Truncated to nanoseconds. Immutable.
class CostCurve {
 public:
  /// How the time goes on above the last point.
  enum class Growth : std::uint8_t { kLinear, kQuadratic };

  /// The default takes no time.
  CostCurve() = default;

  /// `invalid`: no points, or points whose tokens do not ascend from 1 or whose time falls.
  static Result<CostCurve> create(std::vector<CostPoint> points, Growth growth);

  /// Never falls with `tokens`, if the points' times do not fall. 0 for no tokens.
  std::uint64_t time_ns(std::uint64_t tokens) const;

  std::span<const CostPoint> points() const { return points_; }
  Growth growth() const { return growth_; }

  friend bool operator==(const CostCurve&, const CostCurve&) = default;

 private:
  std::vector<CostPoint> points_;
  std::vector<std::int64_t> rates_ps_;  ///< Per token, by point.
  Growth growth_ = Growth::kLinear;
};

}  // namespace batchloom::planning
