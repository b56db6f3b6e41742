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

WideInt ShareOutlook::earned_in(const WeightsInForce& weights, const Stretch& stretch,
                                std::size_t source) const {
  const WideInt units = WideInt{stretch.end.value - stretch.begin.value} * units_per_step_;
  return share_in(weights, stretch, source) * units;
}

void ShareOutlook::pop_stretch(const WeightsInForce& weights) {
  stretches_.pop_front();
  for (std::size_t source = 0; source < walks_.size(); ++source) {
    Walk& walk = walks_[source];
    if (walk.stretches == 1) continue;
    --walk.stretches;
    walk.earned -= earned_in(weights, stretches_.front(), source);
  }
}

void ShareOutlook::move_to(const WeightsInForce& weights, model::Step step, bool changed) {
  if (changed) stretches_.clear();
  step_ = step;
  while (!stretches_.empty() && stretches_.front().end <= step) pop_stretch(weights);
  if (stretches_.empty()) {
    append_stretch(weights, step);
    walks_.assign(weights.size(), {});
  }
  shares_.resize(weights.size());
  for (std::size_t source = 0; source < weights.size(); ++source) {
    shares_[source] = share_in(weights, stretches_.front(), source);
  }
}

WideInt ShareOutlook::last_place_within(const WeightsInForce& weights, std::size_t source,
                                        WideInt credit, std::uint64_t step_units) {
  const WideInt place = WideInt{step_.value} * units_per_step_ + step_units;
  const WideInt share = shares_[source];
  if (credit < 0) return share == 0 ? kNever : place - (-credit + share - 1) / share;
  const model::Step end_step = stretches_.front().end;
  const bool last = end_step == Schedule::kNeverChanges;
  const WideInt end = last ? kNever : WideInt{end_step.value} * units_per_step_;
  // Compared before it is multiplied: kNever times a share would overflow.
  if (share != 0 && credit / share < end - place) return place + credit / share;
  if (last) return kNever;
  return walk_on(weights, source, credit - share * (end - place));
}

/// The same from the end of the first stretch on.
WideInt ShareOutlook::walk_on(const WeightsInForce& weights, std::size_t source, WideInt credit) {
  Walk& walk = walks_[source];
  if (credit < walk.earned) walk = {};
  for (credit -= walk.earned;; ++walk.stretches) {
    const std::size_t i = walk.stretches;
    if (i == stretches_.size()) append_stretch(weights, stretches_.back().end);
    const Stretch& stretch = stretches_[i];
    const bool last = stretch.end == Schedule::kNeverChanges ||
                      (unit_ == StepUnit::kTokens && i == kFarStretches);
    const WideInt begin = WideInt{stretch.begin.value} * units_per_step_;
    const WideInt end = last ? kNever : WideInt{stretch.end.value} * units_per_step_;
    const WideInt share = share_in(weights, stretch, source);
    if (share != 0 && credit / share < end - begin) return begin + credit / share;
    if (last) return kNever;
    const WideInt earned = share * (end - begin);
    credit -= earned;
    walk.earned += earned;
  }
}

}  // namespace batchloom::planning
