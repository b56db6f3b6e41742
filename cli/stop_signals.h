// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>

#include "batchloom/base/runtime.h"
#include "batchloom/objstore/posix_fd.h"

namespace batchloom::cli {

/// Within so long after an error or a signal a command ends, whatever hangs.
inline constexpr unsigned kEndsWithinS = 30;

/// In so many seconds the process says so and ends with kFailed, unless it has ended by itself: a
/// thread may hang in a request that nobody can stop, and would be waited for.
void end_within(unsigned seconds);

/// Called before the process ends at once, by a second signal or after end_within(): what leaves a
/// terminal as it was. null: nothing. It may do what a signal handler may.
void before_forced_end(void (*restore)());

/// SIGINT and SIGTERM as a stop token, for commands that end in good order. Those that do not
/// within a time after the first signal, since something hangs, are ended; the second signal ends
/// the process at once. Nothing that was committed is lost by that. Made before any thread is
/// spawned, since threads inherit which signals they do not take; at most one at a time.
class StopSignals {
 public:
  explicit StopSignals(Runtime& runtime, unsigned ends_within_s = kEndsWithinS);
  /// Signals do again what they did before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Triggered by the first signal.
  std::stop_token token() const { return source_.get_token(); }
  bool came() const { return source_.stop_requested(); }

 private:
  void wait_for_signals();

  const unsigned ends_within_s_;
  std::stop_source source_;
  const objstore::Fd signals_;
  const objstore::Fd end_;  // Readable once this object goes.
  std::unique_ptr<Task> waiter_;
};

}  // namespace batchloom::cli
