// SPDX-License-Identifier: Apache-2.0
// A source's weight as a function of the step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/base/strong_int.h"
#include "batchloom/model/ids.h"

namespace batchloom::planning {

/// A weight in billionths: 0.4 is Weight(400'000'000). Only its ratio to the others' matters. There
/// are no negative ones.
using Weight = StrongInt<struct WeightTag, std::uint64_t>;
/// 100,000: the weights of kMaxSources sources add up in 63 bits.
inline constexpr Weight kMaxWeight{100'000'000'000'000};

/// How a weight comes from the point before to its own. Values are part of no format.
enum class Ramp : std::uint8_t {
  kNone,    ///< All at once, at the point's step.
  kLinear,  ///< By the same amount in every step.
  kCosine,  ///< Half a wave of a cosine: slowly, then faster, then slowly.
};

/// From `step` on the weight is `weight`, until the next point.
struct WeightPoint {
  model::Step step;
  Weight weight;
  Ramp ramp = Ramp::kNone;

  friend bool operator==(const WeightPoint&, const WeightPoint&) = default;
};

/// Points, and what lies between them:
///
///   constant   one point
///   step       points without ramps
///   linear     two points, the second with Ramp::kLinear
///   cosine     two points, the second with Ramp::kCosine
///   piecewise  any
///
/// All integers, the same on every host. Between two points a weight is rounded up, so that it is 0
/// only where a point says so: within a ramp it is 0 only if both of its ends are. Immutable.
class Schedule {
 public:
  static constexpr std::size_t kMaxPoints = 1'024;

  /// The default weighs nothing.
  Schedule() : Schedule(Weight(0)) {}
  /// One weight for ever. Precondition: at most kMaxWeight.
  explicit Schedule(Weight constant);

  /// `invalid`: no point or more than kMaxPoints, steps that do not ascend, a weight above
  /// kMaxWeight, a ramp to the first point. Before the first point its weight holds.
  static Result<Schedule> create(std::vector<WeightPoint> points);

  Weight at(model::Step step) const;

  /// The first step after `step` whose weight may be another one; kNeverChanges if there is none.
  model::Step constant_until(model::Step step) const;
  static constexpr model::Step kNeverChanges{UINT64_MAX};

  std::span<const WeightPoint> points() const { return points_; }

  friend bool operator==(const Schedule&, const Schedule&) = default;

 private:
  explicit Schedule(std::vector<WeightPoint> points) : points_(std::move(points)) {}

  std::vector<WeightPoint> points_;  ///< Never empty.
};

}  // namespace batchloom::planning
