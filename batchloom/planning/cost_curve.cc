// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/cost_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kPsPerNs = 1000;
__extension__ using Wide = unsigned __int128;

}  // namespace

Result<CostCurve> CostCurve::create(std::vector<CostPoint> points, Growth growth) {
  if (points.empty()) return Status::invalid("a cost curve without points");
  if (points[0].tokens == 0) return Status::invalid("a cost curve with a point at 0 tokens");
  for (std::size_t i = 1; i < points.size(); ++i) {
    const bool ascends = points[i - 1].tokens < points[i].tokens;
    if (ascends && points[i - 1].time_ps <= points[i].time_ps) continue;
    return Status::invalid(fmt::format(
        "a cost curve goes from {} tokens in {} ps to {} tokens in {} ps; tokens must ascend, and "
        "more of them take no less time",
        points[i - 1].tokens, points[i - 1].time_ps, points[i].tokens, points[i].time_ps));
  }
  CostCurve curve;
  curve.growth_ = growth;
  for (const CostPoint& point : points) {
    curve.rates_ps_.push_back(static_cast<std::int64_t>(point.time_ps / point.tokens));
  }
  curve.points_ = std::move(points);
  return curve;
}

std::uint64_t CostCurve::time_ns(std::uint64_t tokens) const {
  if (tokens == 0 || points_.empty()) return 0;
  if (tokens <= points_.front().tokens) return points_.front().time_ps / kPsPerNs;
  const CostPoint& last = points_.back();
  if (tokens >= last.tokens) {
    Wide time_ps = Wide{last.time_ps} * tokens / last.tokens;
    if (growth_ == Growth::kQuadratic) time_ps = time_ps * tokens / last.tokens;
    return static_cast<std::uint64_t>(time_ps / kPsPerNs);
  }
  const auto after = std::ranges::upper_bound(points_, tokens, {}, &CostPoint::tokens);
  const auto i = static_cast<std::size_t>(after - points_.begin());
  const auto span = static_cast<std::int64_t>(points_[i].tokens - points_[i - 1].tokens);
  const auto into = static_cast<std::int64_t>(tokens) - points_[i - 1].tokens;
  const std::int64_t rate_ps = rates_ps_[i - 1] + (rates_ps_[i] - rates_ps_[i - 1]) * into / span;
  return tokens * static_cast<std::uint64_t>(rate_ps) / kPsPerNs;
}

}  // namespace batchloom::planning
