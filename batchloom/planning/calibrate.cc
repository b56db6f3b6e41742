// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kTimingPsPerNs = 1000;
constexpr std::uint64_t kMillion = 1'000'000;
__extension__ using Wide = unsigned __int128;

/// What a timing says of a curve.
using Series = std::uint64_t (*)(const Timing&);

/// Of an even number of times, the mean of the two in the middle. Precondition: not empty.
std::uint64_t median_ps(std::vector<std::uint64_t> times_ps) {
  std::ranges::sort(times_ps);
  const std::uint64_t lower = times_ps[(times_ps.size() - 1) / 2];
  return lower + (times_ps[times_ps.size() / 2] - lower) / 2;
}

/// Neighbours that take the same time, as the sum of their points' times.
struct TimePool {
  std::uint64_t points = 0;
  Wide sum_ps = 0;

  std::uint64_t mean_ps() const { return static_cast<std::uint64_t>(sum_ps / points); }
};

/// Pools neighbours until no time falls.
void pool_falls(std::vector<CostPoint>& points) {
  std::vector<TimePool> pools;
  for (const CostPoint& point : points) {
    TimePool last{.points = 1, .sum_ps = point.time_ps};
    while (!pools.empty() && pools.back().mean_ps() > last.mean_ps()) {
      last.points += pools.back().points;
      last.sum_ps += pools.back().sum_ps;
      pools.pop_back();
    }
    pools.push_back(last);
  }
  std::size_t next = 0;
  for (const TimePool& pool : pools) {
    for (std::uint64_t i = 0; i < pool.points; ++i) points[next++].time_ps = pool.mean_ps();
  }
}

Result<CostCurve> fit_curve(std::span<const Timing> rows, Series series, CostCurve::Growth growth) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> times_ps;
  for (const Timing& row : rows) times_ps[row.tokens].push_back(series(row));
  std::vector<CostPoint> points;
  for (auto& [tokens, times] : times_ps) points.push_back({tokens, median_ps(std::move(times))});
  pool_falls(points);
  return CostCurve::create(std::move(points), growth);
}

std::uint64_t forward_of(const Timing& row) {
  return row.forward_ps;
}
std::uint64_t both_of(const Timing& row) {
  return row.both_ps();
}

/// `rows` may be none.
RowErrors errors_of(const CostCurve& curve, std::span<const Timing> rows) {
  RowErrors errors;
  if (rows.empty()) return errors;
  errors.rows = static_cast<std::uint32_t>(rows.size());
  errors.worst_line = rows.front().line;
  Wide sum_ppm = 0;
  for (const Timing& row : rows) {
    const std::uint64_t fitted_ns = curve.time_ns(row.tokens);
    const std::uint64_t measured_ns = std::max<std::uint64_t>(row.both_ps() / kTimingPsPerNs, 1);
    const std::uint64_t off_ns =
        std::max(fitted_ns, measured_ns) - std::min(fitted_ns, measured_ns);
    const auto ppm = static_cast<std::uint64_t>(Wide{off_ns} * kMillion / measured_ns);
    sum_ppm += ppm;
    if (ppm <= errors.worst_ppm) continue;
    errors.worst_ppm = ppm;
    errors.worst_line = row.line;
  }
  errors.mean_ppm = static_cast<std::uint64_t>(sum_ppm / rows.size());
  return errors;
}

/// The errors of both; of equally bad rows that of `one`.
RowErrors merged(const RowErrors& one, const RowErrors& other) {
  if (one.rows == 0) return other;
  if (other.rows == 0) return one;
  const bool other_is_worse = other.worst_ppm > one.worst_ppm;
  const Wide sum_ppm = Wide{one.mean_ppm} * one.rows + Wide{other.mean_ppm} * other.rows;
  const std::uint32_t rows = one.rows + other.rows;
  return {.rows = rows,
          .worst_ppm = std::max(one.worst_ppm, other.worst_ppm),
          .mean_ppm = static_cast<std::uint64_t>(sum_ppm / rows),
          .worst_line = other_is_worse ? other.worst_line : one.worst_line};
}

/// The rows of some tokens, as the curve of all other rows predicts them.
RowErrors errors_without(std::span<const Timing> rows, std::uint32_t tokens,
                         CostCurve::Growth growth) {
  std::vector<Timing> others;
  std::vector<Timing> left_out;
  for (const Timing& row : rows) (row.tokens == tokens ? left_out : others).push_back(row);
  if (others.empty()) return {};
  const Result<CostCurve> curve = fit_curve(others, both_of, growth);
  return curve.is_ok() ? errors_of(*curve, left_out) : RowErrors();
}

FitError error_of(const CostCurve& curve, std::span<const Timing> rows) {
  FitError error;
  const std::span<const CostPoint> points = curve.points();
  error.points = static_cast<std::uint32_t>(points.size());
  error.residual = errors_of(curve, rows);
  for (const CostPoint& point : points) {
    const RowErrors errors = errors_without(rows, point.tokens, curve.growth());
    RowErrors& of = &point == &points.front()  ? error.left_out_first
                    : &point == &points.back() ? error.left_out_last
                                               : error.left_out;
    of = merged(of, errors);
  }
  return error;
}

struct PartFit {
  CostCurve both;
  CostCurve forward;
  FitError error;
};

/// Precondition: `rows` is not empty.
Result<PartFit> fit_part(std::span<const Timing> rows, CostCurve::Growth growth) {
  const Result<CostCurve> both = fit_curve(rows, both_of, growth);
  const Result<CostCurve> forward = fit_curve(rows, forward_of, growth);
  for (const Status& status : {both.status(), forward.status()}) {
    if (!status.is_ok()) return status.with_context(to_string(rows.front().part));
  }
  return PartFit{*both, *forward, error_of(*both, rows)};
}

}  // namespace

Result<Calibration> calibrate(std::span<const Timing> timings, CostModel rest) {
  std::map<TimedPart, std::vector<Timing>> rows;
  for (const Timing& timing : timings) rows[timing.part].push_back(timing);
  for (const TimedPart part : {TimedPart::kAttention, TimedPart::kLinear}) {
    if (rows[part].empty()) {
      return Status::invalid(
          fmt::format("calibrate: no row of kind {}; attention and linear must both be timed",
                      to_string(part)));
    }
  }
  constexpr auto kQuadratic = CostCurve::Growth::kQuadratic;
  constexpr auto kLinear = CostCurve::Growth::kLinear;
  BL_ASSIGN_OR_RETURN(PartFit attention, fit_part(rows[TimedPart::kAttention], kQuadratic));
  BL_ASSIGN_OR_RETURN(PartFit linear, fit_part(rows[TimedPart::kLinear], kLinear));
  Calibration made;
  made.model = std::move(rest);
  made.attention = attention.error;
  made.linear = linear.error;
  made.model.attention = std::move(attention.both);
  made.model.attention_forward = std::move(attention.forward);
  made.model.linear = std::move(linear.both);
  made.model.linear_forward = std::move(linear.forward);
  if (!rows[TimedPart::kEncoder].empty()) {
    BL_ASSIGN_OR_RETURN(PartFit encoder, fit_part(rows[TimedPart::kEncoder], kQuadratic));
    made.model.encoder = std::move(encoder.both);
    made.encoder = encoder.error;
  }
  return made;
}

}  // namespace batchloom::planning
