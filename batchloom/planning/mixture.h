// SPDX-License-Identifier: Apache-2.0
// Which samples a step contains: the parts of records that all sources give, in one order that
// follows from configuration, data, weights and their updates alone. Nothing here knows of ranks,
// capacity or strategies.
//
// A source's *quota* is the sum, over all that was drawn while it took part, of its share of the
// weights at that time; its *credit* is its quota less what was drawn from it. All credits add up
// to 0. M is the largest part: max_sample_tokens, or 1 where steps count samples. The rule:
//
//   A source's level is 0 for a credit of 0 to M, 1 above M to 2M, and so on; below 0 it may not be
//   drawn. It falls due when its credit, if nothing is drawn from it, exceeds its level x M plus
//   its next part. Of the highest level, what falls due first is drawn (ties: the lower id).
//
// 1. Nobody is drawn more than one of its own parts ahead, since it has a credit of 0 or more.
// 2. Nobody falls more than M behind while weights go as foreseen. In a fluid mixture, where each
//    source flows at its share, its next part starts at credit 0 and is due when it has flowed. Say
//    j is due at D and still waits at T > D. Let k be the last part drawn that is due later than D,
//    at t (or nothing, at the start). What was drawn after k, and j, is due by D and had not
//    started at t, or it would have been drawn before k. So all of it flows within [t, D]: (T - t -
//    |k|) + |j| <= D - t, and the credit of j at T is at most |j| + (T - D) <= |k| <= M. Lengths
//    are whole numbers, so this holds for dates rounded down, too.
// 3. After one change that was not foreseen, nobody falls more than 2M behind: credits are at most
//    M then, so 2 holds from there on for level 1 with M in place of 0. After any number of
//    changes, the mean of the j largest credits is at most M/j + M/(j + 1) above that of the j + 1
//    largest: less than 2 M H(n) with n sources. Nobody without foresight can avoid ln(n): make
//    each source light once it is drawn, and the last one has waited for 1/n + 1/(n - 1) + ... +
//    1/2.
//
// R. Tijdeman, "The chairman assignment problem" (Discrete Mathematics 32, 1980) for parts of one
// size; for others this is WF2Q (Bennett and Zhang, INFOCOM 1996) with rates that change. The means
// in 3 are from the analysis of cup games (Dietz and Sleator, STOC 1987).
//
// Foreseen are schedules, where steps count samples. Where they count tokens, nobody knows how many
// a step will hold: in every step weights change up to M before the date foreseen. Not foreseen are
// live updates (or what is drawn would depend on when they were asked for), and that a source takes
// part no longer: because it weighs 0, or was dropped. Such a source is not drawn, and its credit
// is forgotten. The others' must add up to 0 again: those above 0, or those below, shrink in
// proportion.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/model/ids.h"
#include "batchloom/planning/mixture_config.h"
#include "batchloom/planning/mixture_state.h"
#include "batchloom/planning/record_lengths.h"
#include "batchloom/planning/share_outlook.h"
#include "batchloom/planning/weights_log.h"

namespace batchloom::planning {

/// A stretch of a record as a training example.
struct Part {
  model::SampleId id;
  std::uint32_t tokens = 0;          ///< At least 1, at most max_sample_tokens.
  std::uint64_t first_position = 0;  ///< In the record, of the part's token 0.

  friend bool operator==(const Part&, const Part&) = default;
};

/// A part, and the step that it belongs to.
struct Draw {
  model::Step step;
  Part part;

  friend bool operator==(const Draw&, const Draw&) = default;
};

/// All parts of a step, in the order in which they were drawn.
struct MixtureStep {
  model::Step step;
  std::vector<Part> parts;  ///< Not empty.
  std::uint64_t tokens = 0;
  bool last = false;  ///< The stream ended while it was being filled: it may be a short one.

  friend bool operator==(const MixtureStep&, const MixtureStep&) = default;
};

/// Draws. A call takes O(sources) per part, and asks RecordLengths once per part. After an error
/// nothing has changed, and the call may be repeated. One thread at a time.
class Mixture {
 public:
  /// From the beginning. `lengths` must outlive the result. `invalid`: as check_config(); a step in
  /// which nothing weighs anything.
  static Result<std::unique_ptr<Mixture>> create(MixtureConfig config, RecordLengths& lengths);

  /// Where `state` ends, exactly as the mixture that it was taken from goes on. Its configuration
  /// may differ in its weights and policies. `invalid`: as create(), and a state that cannot be of
  /// this configuration: other sources, unit or max_sample_tokens, a record that does not exist.
  static Result<std::unique_ptr<Mixture>> resume(MixtureConfig config, MixtureState state,
                                                 RecordLengths& lengths);

  Mixture(const Mixture&) = delete;
  Mixture& operator=(const Mixture&) = delete;

  /// The next step, or nothing when the stream has ended: a source with Exhausted::kStop has no
  /// more, or all were dropped. Where draw() has begun a step, what is left of it, if anything is.
  ///
  /// A step that counts samples has units_per_step of them. One that counts tokens takes parts
  /// until the next one does not fit. While weights stay, that one is the first of the next step.
  ///
  /// `exhausted`: it is the turn of a source with Exhausted::kError that has no more, or only
  /// sources that weigh 0 are left. `invalid`: a source whose records are all of 0 tokens, or a
  /// record shorter than what was drawn from it. Others: those of RecordLengths.
  Result<std::optional<MixtureStep>> next_step();

  /// The next part alone. As next_step().
  Result<std::optional<Draw>> draw();

  /// From `from_step` on, these sources have these weights instead of their schedules'; others keep
  /// theirs. What is drawn before `from_step` does not change. `invalid`: a step of which parts
  /// are drawn already; a source that does not exist or is named twice; a weight above kMaxWeight;
  /// a step in which nothing would weigh anything. `exhausted`: too many wait (kMaxLogEntries).
  Status set_weights(model::Step from_step, std::span<const SourceWeight> weights);

  const MixtureConfig& config() const { return config_; }
  /// Valid until the next call that changes something.
  const MixtureState& state() const { return state_; }

 private:
  /// A source's next part, where it is known.
  struct NextPart {
    bool known = false;
    bool exhausted = false;  ///< There is none; it stands for one of the largest size.
    Part part;
    std::uint64_t record_tokens = 0;
    WideInt due = kNever;  ///< At level 0.
  };

  Mixture(MixtureConfig config, MixtureState state, RecordLengths& lengths);

  WeightsInForce weights() const { return {config_.sources, state_.sources}; }
  Result<std::optional<std::size_t>> choose();
  Status reckon_shares();
  Status check_nothing_is_left() const;
  std::string name_of(std::size_t source) const;
  bool forget_credits_of_others();
  Status look_up(std::size_t source);
  Result<bool> begin_pass(std::size_t source);
  std::optional<std::size_t> first_due();
  WideInt due_at(std::size_t source, std::int64_t level);
  std::int64_t level_of(std::int64_t credit) const;
  std::int64_t credit_of(std::uint64_t units) const;
  std::uint64_t units_of(const NextPart& next) const;
  bool fits(std::size_t source) const;
  Part take(std::size_t source);
  void finish_step();
  void restore(const MixtureState& saved);

  const MixtureConfig config_;
  RecordLengths& lengths_;
  MixtureState state_;
  const std::int64_t part_credit_;  ///< M.

  // What follows from the state, the configuration and the lengths.
  ShareOutlook outlook_;
  std::vector<NextPart> next_;        ///< By source.
  std::vector<std::size_t> unknown_;  ///< Take part; their next part is not known.
  bool reckoned_ = false;             ///< Shares are those of state_.step.
  bool weights_changed_ = true;       ///< By more than schedules.
};

}  // namespace batchloom::planning
