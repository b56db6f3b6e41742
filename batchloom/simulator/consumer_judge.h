// SPDX-License-Identifier: Apache-2.0
// Judges what one consumer is told, step by step, against what has happened and what its producers
// made:
//
//   I7   it gets every step once, in order, and its state tells them: their hash, and the last one
//   I13  each with the content that its producer made for this very step and rank
//   I15  it passes over the steps, and over those only, that the head it opened with skips; that is
//        the very head that it asked for, or a newer one that skips nothing it has yet to read; and
//        it is told the end only where the stream has ended
#pragma once

#include <vector>

#include "batchloom/client/consumer.h"
#include "batchloom/simulator/batch_sources.h"
#include "batchloom/simulator/store_history.h"

namespace batchloom::simulator {

/// What a rank has trained on so far: what its part of a model checkpoint says.
struct Tally {
  store::Step base;  ///< Where its training began.
  store::Step next;
  std::uint64_t samples_hash = 0;
  std::optional<client::DeliveredStep> last;
  std::uint64_t tokens = 0;
  std::vector<store::Step> passed_over;
  friend bool operator==(const Tally&, const Tally&) = default;
};

/// How a consumer was opened.
struct OpenedConsumer {
  model::HdpRank rank;
  std::uint32_t ranks = 0;  ///< Of the topology that it lays steps out for; 0: as they are stored.
  store::Slot min_slot;
  store::Slot opened_with;
};

/// Of one consumer, from its opening on. One thread at a time.
class ConsumerJudge {
 public:
  ConsumerJudge(const StoreHistory& history, const BatchSources& sources, Violations& violations)
      : history_(history), sources_(sources), violations_(violations) {}

  /// It was opened, to go on after `tally`.
  void opened(const OpenedConsumer& consumer, const Tally& tally);
  /// It could not be opened, because the head that it asked for is gone.
  void refused(const OpenedConsumer& consumer);
  /// next() gave this.
  void delivered(const client::StepBatch& batch);
  /// next() said that the stream ends here.
  void at_end();
  /// It was asked for its state.
  void state_told(const client::ConsumerState& state);
  /// It was sent to another place.
  void sought(const Tally& tally) { tally_ = tally; }

  const Tally& tally() const { return tally_; }
  /// The step that it has to deliver next: the first one from its cursor on that is not skipped.
  store::Step due() const;
  /// That its whole training is exactly what the stream held up to `end`.
  void check_whole(store::Step end);

 private:
  void fail(std::string_view rule, std::string_view text);
  bool is_skipped(store::Step step) const;
  /// Whether it has yet to pass over a step below `end`.
  bool skips_before(store::Step end) const;
  bool is_stored(store::Slot slot) const { return slot > history_.floor(); }
  void check_content(const client::StepBatch& batch, const store::Entry& entry);
  /// Its part of a step that is stored as `entry` says.
  RankOf part_of(const store::Entry& entry) const;

  const StoreHistory& history_;
  const BatchSources& sources_;
  Violations& violations_;
  OpenedConsumer consumer_;
  Tally tally_;
};

}  // namespace batchloom::simulator
