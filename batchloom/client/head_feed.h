// SPDX-License-Identifier: Apache-2.0
// The newest head for all consumers of a process: one of them polls, the others wait for it.
//
//  1. Whoever waits and finds nobody polling becomes the poller: it waits until the next poll is
//     due, reads the newest head, leaves the role and wakes the others.
//  2. Every waiter has its own deadline and stop token. A poller that leaves early wakes the
//     others too, and one of them takes over.
//  3. The pause doubles with every poll that finds nothing new (or fails), and starts anew after
//     news. It belongs to the feed, so a new poller does not poll sooner.
#pragma once

#include <memory>
#include <optional>

#include "batchloom/base/mutex.h"
#include "batchloom/store/manifest_reader.h"

namespace batchloom::client {

using store::Slot;
using store::Step;

struct PollIntervals {
  std::chrono::milliseconds first{50};      ///< Between a poll that found news and the next one.
  std::chrono::milliseconds longest{2000};  ///< Each further one doubles, up to here.
};

/// Counter: client_polls (reads of the newest head). Thread-safe.
class HeadFeed {
 public:
  /// `stream` outlives it.
  explicit HeadFeed(const store::Stream& stream, PollIntervals intervals = {});

  const store::Stream& stream() const { return stream_; }

  /// The newest head seen so far; null before the first.
  store::HeadPtr seen() const;

  /// A head with next_step above `step`, or an ended one: from what was seen, or by polling until
  /// there is one. Nobody polls while nobody waits here. `unavailable` at the deadline, naming the
  /// newest head; errors of the store go to whoever polled.
  Result<store::HeadPtr> wait_for_step(Step step, const CallOptions& call);

  /// A head of at least this slot. Waits and fails as wait_for_step().
  Result<store::HeadPtr> wait_for_slot(Slot slot, const CallOptions& call);

  /// The newest head now, read.
  Result<store::HeadPtr> refresh(const CallOptions& call);

 private:
  /// What a waiter needs of a head.
  struct Wanted {
    std::optional<Step> step;
    Slot slot;
    bool is_met_by(const store::Head& head) const;
  };

  Result<store::HeadPtr> wait_for(const Wanted& wanted, const CallOptions& call);
  /// Waits until a poll is due or another has news, polls, and leaves the role of the poller.
  Status take_turn(const CallOptions& call);
  Status poll(const CallOptions& call);
  /// Reads the newest head; sets when the next poll is due.
  Result<store::HeadPtr> read(const CallOptions& call);
  /// Wakes everybody who waits.
  void wake();
  Status gave_up(const Wanted& wanted, const Status& ended, const CallOptions& call) const;

  const store::Stream& stream_;
  const PollIntervals intervals_;
  Counter& polls_;
  store::ManifestReader reader_;

  mutable Mutex mutex_;
  store::HeadPtr seen_ BL_GUARDED_BY(mutex_);
  bool polling_ BL_GUARDED_BY(mutex_) = false;
  Time due_ BL_GUARDED_BY(mutex_) = Time::min();
  Duration pause_ BL_GUARDED_BY(mutex_);
  // Set by wake(), which puts a fresh one here: nobody resets what others wait for.
  std::shared_ptr<Event> woken_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::client
