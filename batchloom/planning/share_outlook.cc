// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/share_outlook.h"

#include <algorithm>

namespace batchloom::planning {
namespace {

__extension__ using UWideInt = unsigned __int128;

}  // namespace

std::int64_t ShareOutlook::rounded_share(Weight weight, std::uint64_t total) const {
  if (weight.value == 0) return 0;
  return static_cast<std::int64_t>((UWideInt{weight.value} << share_bits(unit_)) / total);
}

void ShareOutlook::append_stretch(const WeightsInForce& weights, model::Step begin) {
  Stretch stretch{.begin = begin, .end = Schedule::kNeverChanges};
  Weight heaviest;
  for (std::size_t source = 0; source < weights.size(); ++source) {
    const Weight weight = weights.at(source, begin);
    stretch.total += weight.value;
    stretch.end = std::min(stretch.end, weights.constant_until(source, begin));
    if (weight <= heaviest) continue;
    heaviest = weight;
    stretch.heir = source;
  }
  stretch.left_over = std::int64_t{1} << share_bits(unit_);
  for (std::size_t source = 0; source < weights.size(); ++source) {
    stretch.left_over -= rounded_share(weights.at(source, begin), stretch.total);
  }
  stretches_.push_back(stretch);
}

std::int64_t ShareOutlook::share_in(const WeightsInForce& weights, const Stretch& stretch,
                                    std::size_t source) const {
  if (stretch.total == 0) return 0;
  const std::int64_t share = rounded_share(weights.at(source, stretch.begin), stretch.total);
  return source == stretch.heir ? share + stretch.left_over : share;
}

void ShareOutlook::move_to(const WeightsInForce& weights, model::Step step, bool changed) {
  if (changed) stretches_.clear();
  step_ = step;
  while (!stretches_.empty() && stretches_.front().end <= step) stretches_.pop_front();
  if (stretches_.empty()) append_stretch(weights, step);
  shares_.resize(weights.size());
  for (std::size_t source = 0; source < weights.size(); ++source) {
    shares_[source] = share_in(weights, stretches_.front(), source);
  }
}

WideInt ShareOutlook::last_place_within(const WeightsInForce& weights, std::size_t source,
                                        WideInt credit, std::uint64_t step_units) {
  WideInt place = WideInt{step_.value} * units_per_step_ + step_units;
  if (credit < 0) {
    const WideInt share = shares_[source];
    return share == 0 ? kNever : place - (-credit + share - 1) / share;
  }
  for (std::size_t i = 0;; ++i) {
    if (i == stretches_.size()) append_stretch(weights, stretches_.back().end);
    const Stretch& stretch = stretches_[i];
    const bool last = stretch.end == Schedule::kNeverChanges ||
                      (unit_ == StepUnit::kTokens && i == kFarStretches);
    const WideInt end = last ? kNever : WideInt{stretch.end.value} * units_per_step_;
    const WideInt share = i == 0 ? shares_[source] : share_in(weights, stretch, source);
    // Compared before it is multiplied: kNever times a share would overflow.
    if (share != 0 && credit / share < end - place) return place + credit / share;
    if (last) return kNever;
    credit -= share * (end - place);
    place = end;
  }
}

}  // namespace batchloom::planning
