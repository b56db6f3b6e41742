// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/cost_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "batchloom/base/mutex.h"

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kPsPerNs = 1000;
constexpr std::uint64_t kBetweenMaxPs = std::numeric_limits<std::int64_t>::max();
__extension__ using Wide = unsigned __int128;

std::uint64_t to_ns(Wide time_ps) {
  constexpr Wide kMost = std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(std::min(time_ps / kPsPerNs, kMost));
}

/// Whether from `before` to `after` neither tokens nor time go back, and every n x r(n) fits.
Status check_neighbours(const CostPoint& before, const CostPoint& after) {
  if (before.tokens >= after.tokens || before.time_ps > after.time_ps) {
    return Status::invalid(fmt::format(
        "a cost curve goes from {} tokens in {} ps to {} tokens in {} ps; tokens must ascend, and "
        "more of them take no less time",
        before.tokens, before.time_ps, after.tokens, after.time_ps));
  }
  const std::uint64_t rate_ps =
      std::max(before.time_ps / before.tokens, after.time_ps / after.tokens);
  if (Wide{rate_ps} * after.tokens <= kBetweenMaxPs) return Status::ok();
  return Status::invalid(fmt::format(
      "a cost curve goes from {} tokens in {} ps to {} tokens in {} ps, too far to count between "
      "them in 64 bits; add a point or use shorter times",
      before.tokens, before.time_ps, after.tokens, after.time_ps));
}

PackTimes times_of_packs(std::vector<std::uint64_t> ns, std::uint64_t launch_ns) {
  PackTimes packs;
  packs.ns = std::move(ns);
  for (std::uint64_t& time_ns : packs.ns) time_ns += launch_ns;
  packs.least_from_ns = packs.ns;
  for (std::size_t tokens = packs.ns.size() - 1; tokens-- > 0;) {
    packs.least_from_ns[tokens] = std::min(packs.ns[tokens], packs.least_from_ns[tokens + 1]);
  }
  for (std::uint32_t tokens = 2; tokens < packs.ns.size(); ++tokens) {
    const std::uint64_t cheapest_ns = packs.ns[packs.cheapest_tokens];
    if (Wide{packs.ns[tokens]} * packs.cheapest_tokens < Wide{cheapest_ns} * tokens) {
      packs.cheapest_tokens = tokens;
    }
  }
  return packs;
}

}  // namespace

struct CostCurve::Kept {
  Mutex mutex;
  std::shared_ptr<const std::vector<std::uint64_t>> times BL_GUARDED_BY(mutex);
  std::shared_ptr<const PackTimes> packs BL_GUARDED_BY(mutex);
  std::uint64_t launch_ns BL_GUARDED_BY(mutex) = 0;  ///< Of the packs.
};

Result<CostCurve> CostCurve::create(std::vector<CostPoint> points, Growth growth) {
  if (points.empty()) return Status::invalid("a cost curve without points");
  if (points[0].tokens == 0) return Status::invalid("a cost curve with a point at 0 tokens");
  for (std::size_t i = 1; i < points.size(); ++i) {
    BL_RETURN_IF_ERROR(check_neighbours(points[i - 1], points[i]));
  }
  CostCurve curve;
  curve.growth_ = growth;
  for (const CostPoint& point : points) {
    curve.rates_ps_.push_back(static_cast<std::int64_t>(point.time_ps / point.tokens));
  }
  curve.points_ = std::move(points);
  curve.kept_ = std::make_shared<Kept>();
  return curve;
}

std::uint64_t CostCurve::time_ns(std::uint64_t tokens) const {
  if (tokens == 0 || points_.empty()) return 0;
  if (tokens <= points_.front().tokens) return points_.front().time_ps / kPsPerNs;
  const CostPoint& last = points_.back();
  if (tokens >= last.tokens) {
    Wide time_ps = Wide{last.time_ps} * tokens / last.tokens;
    if (growth_ == Growth::kQuadratic) time_ps = time_ps * tokens / last.tokens;
    return to_ns(time_ps);
  }
  const auto next = std::ranges::upper_bound(points_, tokens, {}, &CostPoint::tokens);
  return between_ns(static_cast<std::size_t>(next - points_.begin()),
                    static_cast<std::uint32_t>(tokens));
}

std::shared_ptr<const std::vector<std::uint64_t>> CostCurve::table_ns(std::uint32_t most) const {
  if (kept_ == nullptr) return std::make_shared<std::vector<std::uint64_t>>(times_ns(most));
  const MutexLock lock(kept_->mutex);
  if (kept_->times == nullptr || kept_->times->size() <= most) {
    kept_->times = std::make_shared<std::vector<std::uint64_t>>(times_ns(most));
  }
  return kept_->times;
}

std::shared_ptr<const PackTimes> CostCurve::pack_times(std::uint64_t launch_ns,
                                                       std::uint32_t capacity) const {
  const auto make = [&] {
    return std::make_shared<PackTimes>(times_of_packs(times_ns(capacity), launch_ns));
  };
  if (kept_ == nullptr) return make();
  const MutexLock lock(kept_->mutex);
  const bool is_kept = kept_->packs != nullptr && kept_->launch_ns == launch_ns &&
                       kept_->packs->ns.size() == capacity + std::size_t{1};
  if (!is_kept) {
    kept_->packs = make();
    kept_->launch_ns = launch_ns;
  }
  return kept_->packs;
}

/// Several times as fast as one by one.
std::vector<std::uint64_t> CostCurve::times_ns(std::uint32_t most) const {
  std::vector<std::uint64_t> times(most + std::size_t{1});
  std::uint32_t tokens = 0;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const std::uint32_t end = std::min(points_[i].tokens, most);
    for (; tokens < end && tokens < points_[i - 1].tokens; ++tokens) {
      times[tokens] = time_ns(tokens);
    }
    for (; tokens < end; ++tokens) times[tokens] = between_ns(i, tokens);
  }
  for (; tokens <= most; ++tokens) times[tokens] = time_ns(tokens);
  return times;
}

std::uint64_t CostCurve::between_ns(std::size_t i, std::uint32_t tokens) const {
  const CostPoint& before = points_[i - 1];
  const CostPoint& after = points_[i];
  const auto span = static_cast<std::int64_t>(after.tokens - before.tokens);
  const auto into = std::int64_t{tokens} - before.tokens;
  const std::int64_t rate_ps = rates_ps_[i - 1] + (rates_ps_[i] - rates_ps_[i - 1]) * into / span;
  const std::uint64_t time_ps = tokens * static_cast<std::uint64_t>(rate_ps);
  return std::clamp(time_ps, before.time_ps, after.time_ps) / kPsPerNs;
}

}  // namespace batchloom::planning
