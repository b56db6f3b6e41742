// SPDX-License-Identifier: Apache-2.0
// Judges what processes were told against what has happened (consumers: consumer_judge.h):
//
//   I2   every head that a reader is given was really committed, is not older than the newest one
//        was when the reader asked, and a reader's heads never go back
//   I3   every reader finds the same entry for a step, for ever; and so all readers do (I4)
//   I6   a session begins with the batch that comes next
//   I7   and with the state that its predecessor committed last
//   I8   it owns a term that it has fenced
//   I9   what was acknowledged as committed is published, with the very object that was uploaded;
//        an event that was acknowledged has happened
//   I12  a pin or live cursor holds from when it was acknowledged (pin_rules.h)
//   I13  no process is told of damage that there is not, or of a step as trimmed that is there
//   I15  a commit is refused only while the stream has ended, or has another topology, and a
//        membership only where its step is committed; whoever reads a membership gets what a head
//        of that time says
#pragma once

#include <optional>
#include <span>
#include <string>

#include "batchloom/simulator/store_history.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/membership.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::simulator {

/// How often processes were told what.
struct JudgeCounts {
  std::uint64_t refused_commits = 0;
  std::uint64_t pins = 0;
  std::uint64_t refused_pins = 0;
  std::uint64_t refused_memberships = 0;
  std::uint64_t memberships_read = 0;
};

/// What a process was told of one event: whichever of these is set.
struct ToldEvent {
  std::optional<store::Step> skipped = {};
  std::optional<bool> ended = {};
  std::optional<std::uint32_t> ranks = {};  ///< Of the topology from the next step on.
  std::optional<store::Membership> membership = {};
};

/// One thread at a time.
class StoreJudge {
 public:
  StoreJudge(StoreHistory& history, Violations& violations)
      : history_(history), violations_(violations) {}

  void session_opened(const store::ProducerSession& session);
  void committed(const std::string& producer, store::Term term,
                 std::span<const store::PendingBatch> batches, const store::CommitReceipt& receipt);
  /// Batches for so many ranks were refused as `invalid`. `newest_before`: the history's newest
  /// slot when the session began to commit them. `distorted` as below.
  void commit_refused(const std::string& producer, std::uint32_t ranks, store::Slot newest_before,
                      bool distorted);
  /// An event was acknowledged: `event` holds in the head of the receipt.
  void event_told(const ToldEvent& event, const store::EditReceipt& receipt);
  /// A membership from this step on was refused as `invalid`. `distorted` as below.
  void membership_refused(store::Step from_step, bool distorted);
  /// What a process was told of the membership at `step`; nullopt: there is none. `newest_before`:
  /// the history's newest slot when it asked.
  void membership_read(store::Step step, const std::optional<store::Membership>& told,
                       store::Slot newest_before);
  void pin_told(const store::Pin& pin);
  void pin_refused(store::Step step);
  /// A group's consumer is about to open the group's live cursor at this step.
  void cursor_opening(const std::string& group, store::Step step) {
    history_.cursor_opening(group, step);
  }
  /// It was handed every step before this one that it does not pass over.
  void group_reached(const std::string& group, store::Step step) {
    history_.group_reached(group, step);
  }
  /// The consumer of a group was opened, and the group's live cursor with it.
  void cursor_told(const std::string& group, store::Step step);
  /// A process was told that this step is trimmed.
  void trimmed_told(store::Step step);
  /// `newest_before`: the history's newest slot when the reader asked; `last_seen`: the reader's
  /// head before this one.
  void head_read(const store::StoredHead& head, store::Slot newest_before, store::Slot last_seen);
  void entry_read(store::Step step, const store::Entry& entry);
  /// `distorted`: its reads may have met distortions, which may look like damage.
  void process_ended(const std::string& process, const Status& status, bool distorted);

  const JudgeCounts& counts() const { return counts_; }

 private:
  StoreHistory& history_;
  Violations& violations_;
  JudgeCounts counts_;
};

}  // namespace batchloom::simulator
