// SPDX-License-Identifier: Apache-2.0
// A cost model from a user's own timings.
//
//  1. Rows of one part and one number of tokens are repetitions: their median counts, of forward
//     and of forward plus backward, each by itself.
//  2. Where more tokens were measured to take less time, neighbours are pooled to their mean until
//     none do (pool adjacent violators: of all curves that do not fall, the nearest by squares).
//  3. A curve goes through these points. Above the last one attention and encoder grow with the
//     square, the rest linearly.
//  4. Rows lie near a curve that goes through their medians, however badly it tells what was not
//     timed. So each number of tokens is left out in turn, with all its repetitions, and predicted
//     by the curve that 1 to 3 make of the others (leave-one-out). Fewest and most tokens have no
//     others beyond them, and are told apart: they are extrapolated.
#pragma once

#include <cstdint>
#include <span>

#include "batchloom/base/status.h"
#include "batchloom/planning/cost_model.h"
#include "batchloom/planning/timings.h"

namespace batchloom::planning {

/// How far rows lie from a curve, forward and backward together: the difference to the row's time,
/// in millionths of that. All 0 where there are no rows.
struct RowErrors {
  std::uint32_t rows = 0;
  std::uint64_t worst_ppm = 0;
  std::uint64_t mean_ppm = 0;
  std::uint32_t worst_line = 0;  ///< Timing::line of the worst; of several, the first.

  friend bool operator==(const RowErrors&, const RowErrors&) = default;
};

/// Of the rows of one part.
struct FitError {
  std::uint32_t points = 0;  ///< Of the curve: different numbers of tokens.
  RowErrors residual;        ///< From the curve itself: what repetitions and pooling leave.
  // From the curve of all others. Rows of which no curve can be made without them are left away.
  RowErrors left_out;        ///< Between others.
  RowErrors left_out_first;  ///< The fewest tokens: extrapolated.
  RowErrors left_out_last;   ///< The most tokens: extrapolated.

  friend bool operator==(const FitError&, const FitError&) = default;
};

struct Calibration {
  CostModel model;
  FitError attention;
  FitError linear;
  FitError encoder;  ///< No rows: nothing was timed.
};

/// `rest` with the curves that `timings` give; it gives all else: name, version, launch, bytes, and
/// the encoder where that was not timed. `invalid`: no row of attention or none of the linear part;
/// times so far apart that a curve cannot be (CostCurve::create).
Result<Calibration> calibrate(std::span<const Timing> timings, CostModel rest);

}  // namespace batchloom::planning
