// SPDX-License-Identifier: Apache-2.0
// Reads ahead of next(), in step order, on a thread of its own.
//
//  1. A round goes from one position onward. seek() ends it, with its request under way, and
//     begins another.
//  2. A read begins when what it will hold fits into the budget beside what is held already, or
//     when next() waits and nothing is ready. What is read together (a pack) shares one buffer, so
//     it is held until its last step was handed out.
//  3. Heads are waited for, and so polled, only while there is room for a step.
//  4. An error that repeating cannot mend stops the round; next() hands out what was read before it
//     and then, until seek(), the error. Others are repeated with longer and longer pauses, while
//     next() keeps its own deadline.
//  5. A second thread makes the arrays of the steps that next() gives next, where they are asked
//     for: so next() only hands over.
//  6. At the end of an ended stream the round stands still. Every next() there has the head read
//     anew: the stream may have been reopened. One that gives up before the head was read leaves
//     the answer to the next one, for 10 s: short timeouts come to the end too.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>

#include "batchloom/base/mutex.h"
#include "batchloom/client/step_fetcher.h"
#include "batchloom/client/trainer_view.h"

namespace batchloom::client {

struct PrefetchOptions {
  std::uint64_t budget_bytes = 0;  ///< Of steps that were read ahead; their arrays do not count.
  /// Of so many steps that are ready the arrays are made ahead. Each takes 20 bytes for a token.
  std::size_t views_ahead = 0;
  BufferPool* buffers = nullptr;  ///< For arrays; outlives the prefetcher.
};

/// Counters: client_stalls and client_stall_ns, the times and the time that next() waited for a
/// step that was known to be committed when it began to wait; calls that give up and are made again
/// count as one. next(), seek() and stop() are one thread at a time.
class Prefetcher {
 public:
  /// Begins to read at `start`. Feed and fetcher outlive it, and the fetcher is its own meanwhile.
  Prefetcher(HeadFeed& feed, StepFetcher& fetcher, const PrefetchOptions& options, Step start);
  /// stop().
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The next step in order, waiting for it; null at the end of an ended stream. Errors as of
  /// StepFetcher::prepare(), and those of the store; `unavailable` at the deadline, saying what was
  /// waited for; `cancelled` by the stop token and after stop().
  Result<StepPtr> next(const CallOptions& call);

  /// The arrays of the step that next() gave last, where they were made ahead; once.
  std::optional<TrainerView> take_view() { return std::exchange(taken_view_, std::nullopt); }

  /// The step that the next next() waits for because no head that was seen holds it, past skipped
  /// ones; nullopt where a step is ready or can be read.
  std::optional<Step> awaited_commit() const;

  /// Goes on at `step`, whatever was read and whatever failed before. Does not block.
  void seek(Step step);

  /// Ends the thread, with its request under way, and waits for it. Idempotent.
  void stop();

  /// Of the steps that are ready, and of the read under way.
  std::uint64_t held_bytes() const;

 private:
  struct Round {
    std::uint64_t number = 0;
    Step start;
    std::stop_token stop;
  };
  struct Ready {
    StepPtr step;
    std::uint64_t frees_bytes = 0;  // At the last step of what was read together.
    bool view_tried = false;
    std::optional<TrainerView> view = {};
  };

  // next()'s side.
  /// `began`: of the call, at its first look.
  std::optional<Result<StepPtr>> take(const std::optional<Time>& began);
  Result<StepPtr> wait_for_step(const CallOptions& call);
  Status gave_up(const Status& ended) const;
  void stop_waiting();

  // The thread that makes arrays.
  void view_loop(const std::stop_token& stop);
  StepPtr next_without_view();

  // The thread's side.
  void read_loop();
  std::optional<Round> begin_round();
  Status read_from(const Round& round);
  Status wait_for_room(const Round& round, std::uint64_t bytes);
  Result<store::HeadPtr> head_with(Step step, const Round& round);
  Result<std::uint64_t> wait_for_look(const Round& round);
  void answer_end(const Round& round, std::uint64_t look);
  Step publish(const Round& round, std::uint64_t reserved_bytes, FetchedSteps fetched);
  void settle(const Round& round, const Status& ended);
  template <class Attempt>
  auto persist(const Round& round, const Attempt& attempt) -> decltype(attempt(CallOptions()));
  /// Keeps the error for messages, and logs the first of a series.
  void note_trouble(const Round& round, const Status& trouble);
  void forget_trouble(const Round& round);
  bool is_over(const Round& round) const BL_REQUIRES(mutex_);
  bool has_room(std::uint64_t bytes) const BL_REQUIRES(mutex_);

  HeadFeed& feed_;
  Runtime& runtime_;
  StepFetcher& fetcher_;
  const PrefetchOptions options_;
  Counter& stalls_;
  Counter& stall_ns_;
  const std::unique_ptr<Event> wanted_;         // The thread should look again.
  const std::unique_ptr<Event> produced_;       // next() should look again.
  const std::unique_ptr<Event> ready_changed_;  // Arrays may be made.

  mutable Mutex mutex_;
  std::uint64_t round_ BL_GUARDED_BY(mutex_) = 1;
  std::stop_source round_stop_ BL_GUARDED_BY(mutex_);
  Step position_ BL_GUARDED_BY(mutex_);  // Of the round's first step, then after the last taken.
  std::deque<Ready> ready_ BL_GUARDED_BY(mutex_);
  std::uint64_t held_bytes_ BL_GUARDED_BY(mutex_) = 0;
  bool awaited_ BL_GUARDED_BY(mutex_) = false;          // next() waits.
  std::uint64_t looks_ BL_GUARDED_BY(mutex_) = 0;       // That next() asked for.
  std::uint64_t ended_look_ BL_GUARDED_BY(mutex_) = 0;  // The one that learns that this is the end.
  Time ended_at_ BL_GUARDED_BY(mutex_) = {};
  bool look_given_up_ BL_GUARDED_BY(mutex_) = false;  // By a call that asked for it.
  Status failed_ BL_GUARDED_BY(mutex_);
  Status trouble_ BL_GUARDED_BY(mutex_);  // The last error that is being repeated.
  bool stopped_ BL_GUARDED_BY(mutex_) = false;
  std::uint64_t rounds_begun_ = 0;         // The thread's.
  std::optional<TrainerView> taken_view_;  // next()'s.
  bool stall_goes_on_ = false;             // next()'s: the call before gave up in a stall.

  std::unique_ptr<Task> reader_;  // Last: they use all of the above.
  std::unique_ptr<Task> viewer_;
};

}  // namespace batchloom::client
