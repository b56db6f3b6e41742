// SPDX-License-Identifier: Apache-2.0
// How far a producer may be ahead of those who read.
//
//  1. Steps count as written once their object was handed out to be built, so that what is under
//     way cannot overshoot.
//  2. The bound is asked for where what is known of it allows no more, and at least every second:
//     a group that opens again may go back.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "batchloom/base/mutex.h"
#include "batchloom/store/live_cursor.h"

namespace batchloom::control {

/// Where the slowest consumer is: the lowest open live cursor. Cursors below `first_step` are left
/// out: they cannot read on. nullopt where none is open.
std::optional<store::Step> slowest_cursor(store::Step first_step,
                                          std::span<const store::LiveCursor> cursors);

/// From where steps are counted while no live cursor is open: as far as anybody ever came.
store::Step furthest_cursor(store::Step first_step, std::span<const store::LiveCursor> cursors);

struct LeadGateOptions {
  std::optional<std::uint64_t> lead;  ///< Steps; absent: no bound, and nothing is read.
  std::string url;                    ///< Of the stream, for messages.
  store::Step next_step;              ///< Of the stream, as far as known.
};

/// note_commit() and give_back() are thread-safe; all else is the waiting thread's.
class LeadGate {
 public:
  /// `stream` outlives it.
  LeadGate(const store::Stream& stream, LeadGateOptions options);

  /// Waits until the stream is less than `lead` steps ahead, and counts `steps` as handed out. Says
  /// so, once, where it waits because nobody reads. Errors: those of the store, `cancelled`.
  Status wait(std::uint64_t steps, const CallOptions& call);

  /// The same where there is room now; else false, and nothing is counted. Errors: of the store.
  Result<bool> try_take(std::uint64_t steps, const CallOptions& call);

  /// Of the steps handed out, `steps` will not be made after all.
  void give_back(std::uint64_t steps);

  /// How far the stream, with what was handed out, is ahead of the slowest consumer, when last
  /// looked for; 0 without a bound.
  std::uint64_t lead() const;

  /// Of the steps handed out, `steps` were committed; the stream's next step is `next_step`.
  void note_commit(std::uint64_t steps, store::Step next_step);

 private:
  bool has_room() const;
  Status refresh(const CallOptions& call);

  const store::Stream& stream_;
  const LeadGateOptions options_;
  store::ManifestReader reader_;

  // The waiting thread's.
  store::Step slowest_;
  bool someone_reads_ = false;
  bool said_ = false;
  Time due_ = Time::min();

  mutable Mutex mutex_;
  store::Step next_step_ BL_GUARDED_BY(mutex_);
  std::uint64_t handed_out_ BL_GUARDED_BY(mutex_) = 0;  // Not committed yet.
};

}  // namespace batchloom::control
