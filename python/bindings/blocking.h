// SPDX-License-Identifier: Apache-2.0
// Calls that wait, as Python expects of them: without the GIL, and ended by Ctrl-C and by the
// interpreter's end. A thread that asks for the GIL after that end takes the process down with it,
// so that the interpreter may end only when no call is without the GIL.
#pragma once

#include <functional>
#include <stop_token>

#include "batchloom/base/runtime.h"

namespace batchloom::python {

/// How long Ctrl-C may be unheard.
inline constexpr std::chrono::milliseconds kSignalPause{100};

/// A call that lets go of the GIL. Made before it does, and gone when it has the GIL again:
/// declared in front of the gil_scoped_release. The interpreter's end waits for it.
class WaitingCall {
 public:
  /// The interpreter's end asks `stop`. Throws once that has begun.
  explicit WaitingCall(std::stop_source stop = {});
  ~WaitingCall();
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

  void request_stop() { stop_.request_stop(); }
  unsigned long thread() const { return thread_; }

 private:
  std::stop_source stop_;
  const unsigned long thread_;  ///< As Python numbers them.
};

/// The interpreter's end has begun: stops the calls of all other threads, and waits for their end.
/// Later calls throw. Needs the GIL.
void end_all_calls();

/// Whether end_all_calls() was called. Needs the GIL.
bool interpreter_ends();

/// Throws once the interpreter's end has begun: SystemExit, which ends a thread without a word, and
/// `cancelled` in the thread that ends it. Needs the GIL.
void check_interpreter();

/// Runs `body` on another thread, without the GIL, until it is done. `stop` stops it, and so does a
/// signal whose handler raises, which goes on from here when it has stopped. `body` must not touch
/// Python. Throws as check_interpreter() where that has ended meanwhile.
void run_without_gil(Runtime& runtime, const std::function<void(std::stop_token)>& body,
                     const std::stop_source& stop = std::stop_source());

/// Waits without the GIL until `event` is set. Throws what signals raise, and as
/// check_interpreter().
void wait_without_gil(Runtime& runtime, Event& event);

/// Runs the handlers of signals that have come; throws what they raise. Needs the GIL.
void check_signals();

}  // namespace batchloom::python
