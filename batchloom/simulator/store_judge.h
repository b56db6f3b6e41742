// SPDX-License-Identifier: Apache-2.0
// Judges what processes were told against what has happened:
//
//   I2   every head that a reader is given was really committed, is not older than the newest one
//        was when the reader asked, and a reader's heads never go back
//   I3   every reader finds the same entry for a step, for ever; and so all readers do (I4)
//   I6   a session begins with the batch that comes next
//   I7   and with the state that its predecessor committed last
//   I8   it owns a term that it has fenced
//   I9   what was acknowledged as committed is published, with the very object that was uploaded
//   I13  no process is told of damage that there is not
#pragma once

#include <span>
#include <string>

#include "batchloom/simulator/store_history.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::simulator {

/// One thread at a time.
class StoreJudge {
 public:
  StoreJudge(const StoreHistory& history, Violations& violations)
      : history_(history), violations_(violations) {}

  void session_opened(const store::ProducerSession& session);
  void committed(const std::string& producer, store::Term term,
                 std::span<const store::PendingBatch> batches, const store::CommitReceipt& receipt);
  /// `newest_before`: the history's newest slot when the reader asked; `last_seen`: the reader's
  /// head before this one.
  void head_read(const store::StoredHead& head, store::Slot newest_before, store::Slot last_seen);
  void entry_read(store::Step step, const store::Entry& entry);
  /// `distorted`: its reads may have met distortions, which may look like damage.
  void process_ended(const std::string& process, const Status& status, bool distorted);

 private:
  const StoreHistory& history_;
  Violations& violations_;
};

}  // namespace batchloom::simulator
