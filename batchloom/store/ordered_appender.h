// SPDX-License-Identifier: Apache-2.0
// Ordered mode: several constructors upload in parallel, one session commits in sequence order.
//
//  1. Threads hand in uploaded batches in any order.
//  2. One task commits whatever has become a dense prefix, all of it in one commit.
//  3. Batches that wait for an earlier one are bounded in bytes: the thread that hands in the
//     next batch in order is always let through, so the bound cannot block for ever.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "batchloom/base/mutex.h"
#include "batchloom/store/producer_session.h"

namespace batchloom::store {

struct OrderedAppenderOptions {
  /// Bytes of batch objects that are uploaded and not committed, and of their states and run
  /// tables. More is more work lost in a crash; less makes constructors wait for each other.
  std::uint64_t pending_bytes_max = std::uint64_t{512} << 20;
  /// Called by the committing task after each commit, with what it covered.
  std::function<void(std::span<const PendingBatch>, const CommitReceipt&)> on_commit = nullptr;
  /// Called once by the committing task where a commit has failed for good, for those who wait for
  /// something else than submit() and flush().
  std::function<void(const Status&)> on_failure = nullptr;
};

/// Thread-safe. A session has one appender in its life, and outlives it: it begins at the session's
/// next_seq(), and nobody else calls commit() meanwhile.
class OrderedAppender {
 public:
  OrderedAppender(Runtime& runtime, ProducerSession& session, OrderedAppenderOptions options = {});
  /// Stops committing; what is not committed by now stays uncommitted.
  ~OrderedAppender();

  /// Hands in an uploaded batch, waiting for room. `invalid` for a sequence number that was handed
  /// in or committed before; the commit's error once a commit has failed for good (`fenced`,
  /// `exhausted`, ...).
  Status submit(PendingBatch batch, const CallOptions& call);

  /// Waits until everything below `end` is committed. Errors as submit().
  Status flush(Seq end, const CallOptions& call);

 private:
  void commit_loop(const std::stop_token& stop);
  std::vector<PendingBatch> ready_prefix();
  bool has_room(Seq seq, std::uint64_t bytes) const BL_REQUIRES(mutex_);
  void settle(std::span<const PendingBatch> batches, const Status& outcome);

  Runtime& runtime_;
  ProducerSession& session_;
  const OrderedAppenderOptions options_;
  const std::unique_ptr<Event> submitted_;

  mutable Mutex mutex_;
  std::map<Seq, PendingBatch> pending_ BL_GUARDED_BY(mutex_);
  std::uint64_t pending_bytes_ BL_GUARDED_BY(mutex_) = 0;
  Seq next_seq_ BL_GUARDED_BY(mutex_);
  Status failed_ BL_GUARDED_BY(mutex_);
  // Set by the next settle(), which puts a fresh one here: nobody resets what others wait for.
  std::shared_ptr<Event> settled_ BL_GUARDED_BY(mutex_);

  std::unique_ptr<Task> committer_;  // Last: it uses all of the above.
};

}  // namespace batchloom::store
