// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
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

/// What packs of up to a rank's capacity take: a curve's times and a launch each.
struct PackTimes {
  std::vector<std::uint64_t> ns;  ///< By tokens, from 0 on.
  /// Of so many tokens or more: by rounding, more of them may take less.
  std::vector<std::uint64_t> least_from_ns;
  std::uint32_t cheapest_tokens = 1;  ///< By token; of equal ones the fewest.
};

/// The time that one layer takes for n tokens, through measured points. Integers only, so that it
/// is the same everywhere:
///
///   below the first point   the first point's time: a kernel does not get faster than it starts
///   at a point              its time
///   between two points      n x r(n), r being the time per token, in whole picoseconds,
///                           interpolated linearly in n (of the time itself, that would be up to
///                           11 % off); not outside of the two points' times, which r alone would
///                           leave where time hardly grows
///   above the last point    by its growth: time per token, or per token squared, stays
///
/// Truncated to nanoseconds. Immutable; thread-safe.
class CostCurve {
 public:
  /// How the time goes on above the last point.
  enum class Growth : std::uint8_t { kLinear, kQuadratic };

  /// The default takes no time.
  CostCurve() = default;

  /// `invalid`: no points, points whose tokens do not ascend from 1 or whose time falls, or
  /// neighbours so far apart that 64 bits do not hold what lies between them.
  static Result<CostCurve> create(std::vector<CostPoint> points, Growth growth);

  /// Does not fall as `tokens` grow, but for the rounding of r: by 2 ps per token at most, and from
  /// no point to the next. 0 for no tokens. Precondition: `tokens` below 2^32. A time that 64 bits
  /// do not hold becomes the longest that they do.
  std::uint64_t time_ns(std::uint64_t tokens) const;

  /// time_ns() of 0 to `most` tokens, or of more. Made once for a curve and its copies, and anew
  /// where more is asked for: planning asks in every step.
  std::shared_ptr<const std::vector<std::uint64_t>> table_ns(std::uint32_t most) const;

  /// Of packs of 1 to `capacity` tokens, of which there is at least 1. Kept like table_ns(), for
  /// the launch and capacity that were asked for last.
  std::shared_ptr<const PackTimes> pack_times(std::uint64_t launch_ns,
                                              std::uint32_t capacity) const;

  std::span<const CostPoint> points() const { return points_; }
  Growth growth() const { return growth_; }

  friend bool operator==(const CostCurve& a, const CostCurve& b) {
    return a.points_ == b.points_ && a.growth_ == b.growth_;
  }

 private:
  struct Kept;

  std::vector<std::uint64_t> times_ns(std::uint32_t most) const;
  /// Between points i - 1 and i.
  std::uint64_t between_ns(std::size_t i, std::uint32_t tokens) const;

  std::vector<CostPoint> points_;
  std::vector<std::int64_t> rates_ps_;  ///< Per token, by point.
  Growth growth_ = Growth::kLinear;
  std::shared_ptr<Kept> kept_;  ///< Null where there are no points.
};

}  // namespace batchloom::planning
