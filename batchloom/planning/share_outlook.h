// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "batchloom/model/ids.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/weights_log.h"

namespace batchloom::planning {

/// A place in the stream, counted in tokens or samples, if all steps were full. Or an amount of
/// credit.
__extension__ using WideInt = __int128;
/// After every place.
inline constexpr WideInt kNever = static_cast<WideInt>(INT64_MAX) << 60;

/// Every source's share of what is drawn, now and in all steps to come, as the weights in force
/// have it; and from that, when a source will have earned something.
///
/// A share is its weight over all weights, rounded down to share_bits() bits; what is left over
/// goes to the first of the heaviest sources. So the shares of a step add up to exactly 1, and
/// credits to exactly 0. A weight so small that its share is 0 counts as 0.
///
/// One thread at a time.
class ShareOutlook {
 public:
  ShareOutlook(StepUnit unit, std::uint64_t units_per_step)
      : unit_(unit), units_per_step_(units_per_step) {}

  /// Forgets what it knew of steps before `step`, and of all where weights have `changed`.
  void move_to(const WeightsInForce& weights, model::Step step, bool changed);

  /// Of the step moved to, times 2^share_bits(); by SourceId.
  std::span<const std::int64_t> shares() const { return shares_; }

  /// The last place at which the source has earned no more than `credit`, from the place on at
  /// which the step moved to has `step_units`. Negative credit has been earned before: then as if
  /// the source had always had the share that it has now. kNever: it will never have earned more.
  ///
  /// Where steps count tokens, how full they will be is a guess. Not more than kFarStretches
  /// changes of weights are looked at. Amortized constant time for a change, however often asked.
  WideInt last_place_within(const WeightsInForce& weights, std::size_t source, WideInt credit,
                            std::uint64_t step_units);

 private:
  /// As many as there can be sources that change once.
  static constexpr std::size_t kFarStretches = kMaxSources;

  /// Steps [begin, end) have the same weights.
  struct Stretch {
    model::Step begin;
    model::Step end;
    std::uint64_t total = 0;  ///< Of all weights.
    std::size_t heir = 0;     ///< Whose share gets what rounding leaves over.
    std::int64_t left_over = 0;
  };

  /// How far a source's credit was followed, and what it earns until there. It only goes forward:
  /// being drawn, and steps that were not full, put off what is due.
  struct Walk {
    std::size_t stretches = 1;  ///< That are behind it; the first one always is.
    WideInt earned = 0;         ///< In those after the first.
  };

  void append_stretch(const WeightsInForce& weights, model::Step begin);
  std::int64_t share_in(const WeightsInForce& weights, const Stretch& stretch,
                        std::size_t source) const;
  std::int64_t rounded_share(Weight weight, std::uint64_t total) const;
  WideInt earned_in(const WeightsInForce& weights, const Stretch& stretch,
                    std::size_t source) const;
  void pop_stretch(const WeightsInForce& weights);
  WideInt walk_on(const WeightsInForce& weights, std::size_t source, WideInt credit);

  StepUnit unit_;
  std::uint64_t units_per_step_;
  model::Step step_;
  std::deque<Stretch> stretches_;  ///< Without gaps; the first one has the step moved to.
  std::vector<std::int64_t> shares_;
  std::vector<Walk> walks_;  ///< By SourceId.
};

}  // namespace batchloom::planning
