// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::planning {
namespace {

__extension__ using UWide = unsigned __int128;

constexpr int kFractionBits = 60;
constexpr std::uint64_t kFractionOne = std::uint64_t{1} << kFractionBits;
/// Half of pi.
constexpr std::uint64_t kHalfPi = 1'811'004'864'519'280'710;  // floor(pi / 2 * 2^60)

std::uint64_t times_fraction(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(UWide{a} * b >> kFractionBits);
}

/// sin(x) by its series, for x up to half of pi. The first term left out is below 2^-60.
std::uint64_t sine(std::uint64_t x) {
  const std::uint64_t square = times_fraction(x, x);
  std::uint64_t term = x;
  std::uint64_t sum = x;
  for (std::uint64_t n = 2; n <= 24; n += 2) {
    term = times_fraction(term, square) / (n * (n + 1));
    sum = n % 4 == 2 ? sum - term : sum + term;
  }
  return std::min(sum, kFractionOne);
}

/// (1 - cos(pi i / n)) / 2, which is sin^2(pi i / 2n), for 0 < i < n; neither 0 nor 1.
std::uint64_t half_wave(std::uint64_t i, std::uint64_t n) {
  const auto angle = static_cast<std::uint64_t>(UWide{kHalfPi} * i / n);
  const std::uint64_t root = sine(angle);
  return std::clamp<std::uint64_t>(times_fraction(root, root), 1, kFractionOne - 1);
}

Weight weight_between(const WeightPoint& from, const WeightPoint& to, model::Step step) {
  const std::uint64_t into = step - from.step;
  const std::uint64_t length = to.step - from.step;
  if (into == 0 || from.weight == to.weight) return from.weight;
  switch (to.ramp) {
    case Ramp::kNone: return from.weight;
    case Ramp::kLinear: {
      const UWide sum = UWide{from.weight.value} * (length - into) + UWide{to.weight.value} * into;
      return Weight(static_cast<std::uint64_t>((sum + length - 1) / length));
    }
    case Ramp::kCosine: break;
  }
  const std::uint64_t done = half_wave(into, length);
  const UWide sum =
      UWide{from.weight.value} * (kFractionOne - done) + UWide{to.weight.value} * done;
  return Weight(static_cast<std::uint64_t>((sum + kFractionOne - 1) >> kFractionBits));
}

}  // namespace

Schedule::Schedule(Weight constant) : points_{{model::Step(0), constant, Ramp::kNone}} {
  BL_CHECK(constant <= kMaxWeight, "a weight above kMaxWeight");
}

Result<Schedule> Schedule::create(std::vector<WeightPoint> points) {
  if (points.empty() || points.size() > kMaxPoints) {
    return Status::invalid(
        fmt::format("a schedule of {} points; it has 1 to {}", points.size(), kMaxPoints));
  }
  if (points[0].ramp != Ramp::kNone) {
    return Status::invalid(fmt::format(
        "a schedule ramps to its first point, at step {}, from nothing; give it a point before",
        points[0].step.value));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].weight > kMaxWeight) {
      return Status::invalid(fmt::format(
          "a weight of {} billionths at step {}; weights are at most {}, and only their ratios "
          "matter",
          points[i].weight.value, points[i].step.value, kMaxWeight.value));
    }
    if (i > 0 && points[i].step <= points[i - 1].step) {
      return Status::invalid(fmt::format("a schedule's point at step {} follows one at step {}",
                                         points[i].step.value, points[i - 1].step.value));
    }
  }
  return Schedule(std::move(points));
}

Weight Schedule::at(model::Step step) const {
  const auto after = std::ranges::upper_bound(points_, step, {}, &WeightPoint::step);
  if (after == points_.begin()) return after->weight;
  if (after == points_.end()) return points_.back().weight;
  return weight_between(*(after - 1), *after, step);
}

model::Step Schedule::constant_until(model::Step step) const {
  const auto after = std::ranges::upper_bound(points_, step, {}, &WeightPoint::step);
  if (after == points_.end()) return kNeverChanges;
  if (after == points_.begin()) return after->step;
  const bool ramps = after->ramp != Ramp::kNone && after->weight != (after - 1)->weight;
  return ramps ? step + 1 : after->step;
}

}  // namespace batchloom::planning
