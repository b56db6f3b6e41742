// SPDX-License-Identifier: Apache-2.0
// How much a stream may hold: where its batch objects have so many bytes, a producer waits until
// some of them are trimmed. Pins and live cursors decide what is kept, here as everywhere.
//
//  1. Counted are the objects that hold steps the stream still has. They are looked up from where
//     it was last looked on, at most every second, and whenever there seems to be no room.
//  2. What is under way counts as the largest object of this producer so far.
//  3. A stream that holds nothing takes one step, however large.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"

namespace batchloom::control {

struct RetainGateOptions {
  std::optional<std::uint64_t> max_bytes;  ///< Absent: no bound, and nothing is read.
  std::string url;                         ///< Of the stream, for messages.
};

/// note_commit() and give_back() are thread-safe; all else is the waiting thread's.
class RetainGate {
 public:
  /// `stream` outlives it.
  RetainGate(const store::Stream& stream, RetainGateOptions options);

  /// Counts one more object as under way, where there is room now. Errors: those of the store.
  Result<bool> try_take(const CallOptions& call);

  /// The same, waiting for room. Says what keeps the oldest steps, once. Errors: those of the
  /// store, `cancelled`.
  Status wait(const CallOptions& call);

  /// Of the objects under way, so many will not be made after all.
  void give_back(std::uint64_t objects);

  /// Of the objects under way, one of so many bytes was committed; the stream's next step is now
  /// `next_step`.
  void note_commit(std::uint64_t bytes, store::Step next_step);

 private:
  struct Held {
    store::Step end_step;
    std::uint64_t bytes = 0;
  };

  bool has_room() const;
  Status refresh(const CallOptions& call);
  /// Looks up what `head` has from counted_to_ on, and forgets what it trimmed.
  Status count(const store::Head& head, const CallOptions& call);
  Result<std::string> what_keeps_it(const CallOptions& call);

  const store::Stream& stream_;
  const RetainGateOptions options_;
  store::ManifestReader reader_;
  store::SegmentReader segments_;
  store::Step counted_to_;
  std::deque<Held> held_;  ///< Objects that hold steps below counted_to_, ascending.
  Time due_{};
  bool said_ = false;

  mutable Mutex mutex_;
  std::uint64_t held_bytes_ BL_GUARDED_BY(mutex_) = 0;
  std::uint64_t under_way_ BL_GUARDED_BY(mutex_) = 0;
  std::uint64_t largest_bytes_ BL_GUARDED_BY(mutex_) = 0;
  std::vector<Held> unseen_ BL_GUARDED_BY(mutex_);  ///< Committed since it was last looked up.
};

}  // namespace batchloom::control
