// SPDX-License-Identifier: Apache-2.0
// What is kept beside the state (next parts, dates, outlook) is a pure function of it, so that it
// does not matter where a mixture was resumed. A date, once reckoned, stays right until its source
// is drawn, unless shares change other than foreseen: then all are reckoned again. Dates that
// have passed count on with the present share, so they are reckoned again in every step.
#include "batchloom/planning/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/planning/permutation.h"

namespace batchloom::planning {
namespace {

Status check_belongs(const MixtureConfig& config, const MixtureState& state) {
  if (state.sources.size() != config.sources.size()) {
    return Status::invalid(fmt::format("a mixture of {} sources cannot go on from a state of {}",
                                       config.sources.size(), state.sources.size()));
  }
  if (state.unit != config.unit || state.max_sample_tokens != config.max_sample_tokens) {
    return Status::invalid(fmt::format(
        "a mixture with other units of steps, or with max_sample_tokens {}, cannot go on from a "
        "state with {}",
        config.max_sample_tokens, state.max_sample_tokens));
  }
  if (state.step_units > config.units_per_step) {
    return Status::invalid(fmt::format("step {} has {} tokens or samples already, of {}",
                                       state.step.value, state.step_units, config.units_per_step));
  }
  for (std::size_t source = 0; source < state.sources.size(); ++source) {
    const SourceState& row = state.sources[source];
    const std::uint64_t records = config.sources[source].records;
    if (row.place < records || (row.place == records && row.part.value == 0)) continue;
    return Status::invalid(fmt::format("source {} has {} records; the state is at record {} of it",
                                       source, records, row.place));
  }
  return Status::ok();
}

/// Brings credits of one sign nearer to 0, in proportion, so that they add up to `sum` (of the same
/// sign, not larger than what they add up to now).
void shrink_credits(std::span<SourceState> rows, bool positive, WideInt sum) {
  const WideInt sign = positive ? 1 : -1;
  WideInt before = 0;
  for (const SourceState& row : rows) {
    if (sign * row.credit > 0) before += sign * row.credit;
  }
  if (before == sum) return;
  WideInt missing = sum;
  const auto share = [&](const SourceState& row) { return sign * row.credit * sum / before; };
  for (const SourceState& row : rows) {
    if (sign * row.credit > 0) missing -= share(row);
  }
  for (SourceState& row : rows) {  // Rounding took less than one unit from each of them.
    if (sign * row.credit <= 0) continue;
    const WideInt one = missing > 0 ? 1 : 0;
    row.credit = static_cast<std::int64_t>(sign * (share(row) + one));
    missing -= one;
  }
}

}  // namespace

Result<std::unique_ptr<Mixture>> Mixture::create(MixtureConfig config, RecordLengths& lengths) {
  MixtureState state;
  state.unit = config.unit;
  state.max_sample_tokens = config.max_sample_tokens;
  state.sources.resize(config.sources.size());
  return resume(std::move(config), std::move(state), lengths);
}

Result<std::unique_ptr<Mixture>> Mixture::resume(MixtureConfig config, MixtureState state,
                                                 RecordLengths& lengths) {
  BL_RETURN_IF_ERROR(check_config(config));
  BL_RETURN_IF_ERROR(check_belongs(config, state));
  const bool all_gone = std::ranges::all_of(state.sources, &SourceState::gone);
  if (!state.ended && !all_gone) BL_RETURN_IF_ERROR(check_some_weight(config, state));
  return std::unique_ptr<Mixture>(new Mixture(std::move(config), std::move(state), lengths));
}

Mixture::Mixture(MixtureConfig config, MixtureState state, RecordLengths& lengths)
    : config_(std::move(config)),
      lengths_(lengths),
      state_(std::move(state)),
      part_credit_(credit_of(config_.unit == StepUnit::kTokens ? config_.max_sample_tokens : 1)),
      outlook_(config_.unit, config_.units_per_step),
      next_(config_.sources.size()) {}

Result<std::optional<MixtureStep>> Mixture::next_step() {
  const MixtureState saved = state_;
  MixtureStep out;
  out.step = state_.step;
  while (state_.step == out.step) {
    const Result<std::optional<std::size_t>> source = choose();
    if (!source.is_ok()) {
      restore(saved);
      return source.status();
    }
    if (!source->has_value()) {
      out.last = true;
      break;
    }
    if (!fits(**source)) {
      finish_step();
      if (out.parts.empty()) out.step = state_.step;  // draw() had left no room for more.
      continue;
    }
    out.parts.push_back(take(**source));
    out.tokens += out.parts.back().tokens;
  }
  if (out.parts.empty()) return std::optional<MixtureStep>();
  return std::optional(std::move(out));
}

Result<std::optional<Draw>> Mixture::draw() {
  const MixtureState saved = state_;
  while (true) {
    const Result<std::optional<std::size_t>> source = choose();
    if (!source.is_ok()) {
      restore(saved);
      return source.status();
    }
    if (!source->has_value()) return std::optional<Draw>();
    const model::Step step = state_.step;
    if (fits(**source)) return std::optional(Draw{step, take(**source)});
    finish_step();
  }
}

Status Mixture::set_weights(model::Step from_step, std::span<const SourceWeight> weights) {
  const model::Step first = state_.step_units == 0 ? state_.step : state_.step + 1;
  if (from_step < first) {
    return Status::invalid(fmt::format(
        "new weights from step {} on: parts of it are drawn already; step {} is the first that "
        "can have them",
        from_step.value, first.value));
  }
  MixtureState changed = state_;
  BL_RETURN_IF_ERROR(add_to_log(changed, from_step, weights));
  BL_RETURN_IF_ERROR(check_some_weight(config_, changed));
  state_.log = std::move(changed.log);
  state_.version = changed.version;
  reckoned_ = false;
  return Status::ok();
}

/// The source whose turn it is; nothing where the stream has ended.
Result<std::optional<std::size_t>> Mixture::choose() {
  if (state_.ended) return std::optional<std::size_t>();
  while (!reckoned_ || !unknown_.empty()) {
    if (!reckoned_) {
      BL_RETURN_IF_ERROR(reckon_shares());
      if (state_.ended) return std::optional<std::size_t>();
      continue;
    }
    BL_RETURN_IF_ERROR(look_up(unknown_.back()));
    if (reckoned_) unknown_.pop_back();
  }
  const std::optional<std::size_t> first = first_due();
  BL_CHECK(first.has_value(), "nobody is owed anything: credits do not add up to 0");
  const std::size_t source = *first;
  if (!next_[source].exhausted) return std::optional(source);
  if (config_.sources[source].exhausted == Exhausted::kError) {
    return Status::exhausted(fmt::format(
        "source {} has no more records in step {}, after {} of them; let it repeat or be dropped, "
        "or stop before",
        name_of(source), state_.step.value, config_.sources[source].records));
  }
  state_.ended = true;
  return std::optional<std::size_t>();
}

std::string Mixture::name_of(std::size_t source) const {
  return lengths_.name_of(model::SourceId(static_cast<std::uint32_t>(source)));
}

/// Nobody has a share: because all are gone, or because those that are left weigh nothing?
Status Mixture::check_nothing_is_left() const {
  for (std::size_t source = 0; source < next_.size(); ++source) {
    if (state_.sources[source].gone || config_.sources[source].records == 0) continue;
    return Status::exhausted(fmt::format(
        "in step {} all sources that weigh anything have no more records; source {} has, and "
        "weighs 0: give it a weight",
        state_.step.value, name_of(source)));
  }
  return Status::ok();
}

/// Shares and dates for the step at which the state is.
Status Mixture::reckon_shares() {
  if (apply_due_updates(state_)) weights_changed_ = true;
  outlook_.move_to(weights(), state_.step, weights_changed_);
  const std::span<const std::int64_t> shares = outlook_.shares();
  if (std::ranges::all_of(shares, [](std::int64_t share) { return share == 0; })) {
    BL_RETURN_IF_ERROR(check_nothing_is_left());
    state_.ended = true;
    return Status::ok();
  }
  if (forget_credits_of_others()) weights_changed_ = true;
  const WideInt now = WideInt{state_.step.value} * config_.units_per_step + state_.step_units;
  const bool all = weights_changed_ || config_.unit == StepUnit::kTokens;
  unknown_.clear();
  for (std::size_t source = 0; source < next_.size(); ++source) {
    NextPart& next = next_[source];
    if (shares[source] == 0) {
      next.due = -1;  // To be reckoned when it has one.
    } else if (!next.known) {
      unknown_.push_back(source);
    } else if (all || next.due < now) {
      next.due = due_at(source, 0);
    }
  }
  weights_changed_ = false;
  reckoned_ = true;
  return Status::ok();
}

/// Sources without a share are owed nothing, and owe nothing. Whether any credit has changed.
bool Mixture::forget_credits_of_others() {
  bool changed = false;
  WideInt owed = 0;
  WideInt ahead = 0;
  for (std::size_t source = 0; source < next_.size(); ++source) {
    std::int64_t& credit = state_.sources[source].credit;
    if (outlook_.shares()[source] == 0) {
      changed = changed || credit != 0;
      credit = 0;
    }
    (credit > 0 ? owed : ahead) += credit;
  }
  const WideInt both = std::min(owed, -ahead);
  shrink_credits(state_.sources, true, both);
  shrink_credits(state_.sources, false, both);
  return changed;
}

/// Finds out what comes next of a source. Where it is dropped, shares are to be reckoned again.
Status Mixture::look_up(std::size_t source) {
  const MixtureSource& config = config_.sources[source];
  SourceState& row = state_.sources[source];
  NextPart& next = next_[source];
  next.exhausted = false;
  std::uint64_t left_out = 0;
  for (; !next.known; ++row.place) {
    if (row.place == config.records) {
      BL_ASSIGN_OR_RETURN(const bool begun, begin_pass(source));
      if (!begun) return Status::ok();
    }
    const model::SourceId id(static_cast<std::uint32_t>(source));
    const model::RecordIndex record =
        config.order == Order::kFile
            ? model::RecordIndex(row.place)
            : Permutation({config_.seed, id, row.epoch}, config.records).at(row.place);
    BL_ASSIGN_OR_RETURN(next.record_tokens, lengths_.tokens(id, record));
    next.part.id = {id, row.epoch, record, row.part};
    next.part.first_position = std::uint64_t{row.part.value} * config_.max_sample_tokens;
    if (next.part.first_position < next.record_tokens) {
      const std::uint64_t rest = next.record_tokens - next.part.first_position;
      next.part.tokens =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, config_.max_sample_tokens));
      next.known = true;
      break;
    }
    if (row.part.value != 0) {
      return Status::invalid(fmt::format(
          "record {} of source {} has {} tokens, and {} of them were drawn: its length has changed",
          record.value, name_of(source), next.record_tokens, next.part.first_position));
    }
    if (++left_out >= 2 * config.records) {  // At least one whole pass.
      return Status::invalid(
          fmt::format("none of the {} records of source {} has a token; leave it out",
                      config.records, name_of(source)));
    }
  }
  next.due = due_at(source, 0);
  return Status::ok();
}

/// A pass has ended. Begins another one and says so, or settles how it goes on without.
Result<bool> Mixture::begin_pass(std::size_t source) {
  const MixtureSource& config = config_.sources[source];
  SourceState& row = state_.sources[source];
  const std::uint32_t passes = config.epochs == 0 ? UINT32_MAX : config.epochs;
  if (config.exhausted == Exhausted::kRepeat && row.epoch.value + 1 < passes) {
    ++row.epoch;
    row.place = 0;
    return true;
  }
  if (config.exhausted == Exhausted::kDrop) {
    row.gone = true;
    weights_changed_ = true;
    reckoned_ = false;
    return false;
  }
  NextPart& next = next_[source];
  next.known = true;
  next.exhausted = true;
  next.part.tokens = config_.max_sample_tokens;
  next.due = due_at(source, 0);
  return false;
}

std::optional<std::size_t> Mixture::first_due() {
  std::optional<std::size_t> first;
  std::int64_t highest = 0;
  WideInt earliest = 0;
  for (std::size_t source = 0; source < next_.size(); ++source) {
    const std::int64_t credit = state_.sources[source].credit;
    if (credit < 0 || outlook_.shares()[source] == 0) continue;
    const std::int64_t level = level_of(credit);
    if (first && level < highest) continue;
    const WideInt due = level == 0 ? next_[source].due : due_at(source, level);
    if (first && level == highest && due >= earliest) continue;
    first = source;
    highest = level;
    earliest = due;
  }
  return first;
}

/// Precondition: its next part is known.
WideInt Mixture::due_at(std::size_t source, std::int64_t level) {
  const WideInt limit = WideInt{level} * part_credit_ + credit_of(units_of(next_[source]));
  return outlook_.last_place_within(weights(), source, limit - state_.sources[source].credit,
                                    state_.step_units);
}

std::int64_t Mixture::level_of(std::int64_t credit) const {
  return credit <= part_credit_ ? 0 : (credit - 1) / part_credit_;
}

std::int64_t Mixture::credit_of(std::uint64_t units) const {
  return static_cast<std::int64_t>(units << share_bits(config_.unit));
}

std::uint64_t Mixture::units_of(const NextPart& next) const {
  return config_.unit == StepUnit::kTokens ? next.part.tokens : 1;
}

bool Mixture::fits(std::size_t source) const {
  return state_.step_units + units_of(next_[source]) <= config_.units_per_step;
}

/// Precondition: it fits, and the source is not exhausted.
Part Mixture::take(std::size_t source) {
  NextPart& next = next_[source];
  SourceState& row = state_.sources[source];
  const std::uint64_t units = units_of(next);
  const std::span<const std::int64_t> shares = outlook_.shares();
  for (std::size_t other = 0; other < next_.size(); ++other) {
    state_.sources[other].credit += shares[other] * static_cast<std::int64_t>(units);
  }
  row.credit -= credit_of(units);
  if (next.part.first_position + next.part.tokens == next.record_tokens) {
    ++row.place;
    row.part = model::PartIndex(0);
  } else {
    ++row.part;
  }
  next.known = false;
  unknown_.push_back(source);
  state_.step_units += units;
  if (state_.step_units == config_.units_per_step) finish_step();
  return next.part;
}

void Mixture::finish_step() {
  ++state_.step;
  state_.step_units = 0;
  reckoned_ = false;
}

void Mixture::restore(const MixtureState& saved) {
  state_ = saved;
  for (NextPart& next : next_) next.known = false;
  weights_changed_ = true;
  reckoned_ = false;
}

}  // namespace batchloom::planning
