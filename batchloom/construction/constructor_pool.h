// SPDX-License-Identifier: Apache-2.0
// Several constructors in parallel, and one committer behind them.
//
//  1. One thread hands in jobs by ascending sequence number, and waits while the jobs that are not
//     committed yet would exceed a bound in bytes (job_ledger.h).
//  2. Each constructor has one job at a time, the lowest that waits. An attempt that failed for now
//     puts its job back, and any constructor takes it; one that is gone gets no more jobs. Attempts
//     give the same bytes, and which of them is committed does not matter.
//  3. One thread commits what is built, in order, all that is ready at once.
//  4. stop() lets what was handed in come to its end, within a deadline, and then says what is
//     committed, what is not, and of what only a successor's fence can tell.
//
// Committing is a callback, so that the owner of the session decides what else belongs to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/construction/constructor.h"
#include "batchloom/construction/job_ledger.h"
#include "batchloom/construction/monitor.h"

namespace batchloom::construction {

/// Publishes batches in their order: all of them where it is ok. After `unavailable`, `conflict` or
/// `unknown_outcome` it is called again with the same ones, and perhaps more behind them; other
/// errors end the pool's work. ProducerSession::commit() is such a function.
using CommitBatches =
    std::function<Status(std::span<const store::PendingBatch>, const CallOptions&)>;

struct ConstructorPoolOptions {
  store::Seq first;  ///< Of the first job: the session's next_seq().
  /// Bytes of jobs handed in and not committed. More hides slow uploads and commits behind each
  /// other; less is less work lost in a crash.
  std::uint64_t bytes_max = std::uint64_t{1} << 30;
  /// An attempt may take so long, and is then made again by whichever constructor is free.
  Duration attempt_max = std::chrono::minutes(10);
};

/// How a pool ended. Every job handed in is in one of the three ranges.
struct PoolEnd {
  store::Seq committed_end;  ///< All below are committed.
  /// A commit was begun of those below, and how it ended is not known: the session that fences this
  /// one finds out (ProducerSession::next_seq()).
  store::Seq unknown_end;
  store::Seq
      end;        ///< Those below were handed in. What is at or above unknown_end is not committed.
  Status reason;  ///< Why not all is committed; ok where all is.

  bool all_committed() const { return committed_end == end; }
};

/// Thread-safe, but for submit() and stop(): each one thread at a time.
class ConstructorPool {
 public:
  /// The constructors, of which there is at least one, and what `commit` needs outlive the pool;
  /// nobody else uses them meanwhile. Attempts that fail are logged.
  ConstructorPool(Runtime& runtime, std::span<Constructor* const> constructors,
                  CommitBatches commit, ConstructorPoolOptions options);
  /// Stops at once, as stop() with a deadline that has passed, and waits for the threads.
  ~ConstructorPool();
  ConstructorPool(const ConstructorPool&) = delete;
  ConstructorPool& operator=(const ConstructorPool&) = delete;

  /// Hands in a job, waiting for room. `invalid` for a sequence number other than the next;
  /// `cancelled` once stop() was called; the first error for good of a constructor or a commit, or
  /// `unavailable` once all constructors are gone. After an error the job was not handed in.
  Status submit(ConstructionJob job, const CallOptions& call);

  /// Waits until all that was handed in before is committed. Errors as submit().
  Status flush(const CallOptions& call);

  /// Takes no more jobs, waits as flush(), then ends the threads: that takes as long as
  /// constructors and commits need to see their stop token. Idempotent.
  PoolEnd stop(const CallOptions& call);

  /// Of jobs handed in and not committed.
  std::uint64_t pending_bytes() const;
  /// Constructors that are not gone.
  std::size_t live_constructors() const;

 private:
  struct State {
    JobLedger ledger;
    std::size_t live = 0;
    bool closed = false;
    Status failed;
  };

  void run_constructor(Constructor& constructor, const std::stop_token& stop);
  void run_committer(const std::stop_token& stop);
  /// The lowest job that waits; null once there will be none.
  JobPtr next_job(const CallOptions& call);
  /// What is ready; empty once there will be nothing.
  std::vector<store::PendingBatch> next_batches(const CallOptions& call);
  void retire(const Constructor& constructor, const Status& error);
  void fail(const Status& error);
  void end_threads();

  Runtime& runtime_;
  const CommitBatches commit_;
  const ConstructorPoolOptions options_;
  const std::size_t constructors_;
  Monitor<State> state_;
  std::vector<std::unique_ptr<Task>> threads_;  // Last: they use all of the above.
};

}  // namespace batchloom::construction
