// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "batchloom/base/mutex.h"
#include "batchloom/base/runtime.h"

namespace batchloom::construction {

/// A state that threads share, and that they can wait for. Each change wakes all who wait: for few
/// threads and changes that take work. Functions given to it run under a lock: they call nobody.
/// Thread-safe.
template <class State>
class Monitor {
 public:
  /// `runtime` outlives it.
  Monitor(Runtime& runtime, State state)
      : runtime_(runtime), state_(std::move(state)), changed_(runtime.make_event()) {}
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// read(const State&). Does not block.
  template <class F>
  auto read(F read) const {
    const MutexLock lock(mutex_);
    return read(std::as_const(state_));
  }

  /// apply(State&). Does not block.
  template <class F>
  void change(F apply) {
    std::shared_ptr<Event> changed = runtime_.make_event();
    {
      const MutexLock lock(mutex_);
      apply(state_);
      changed_.swap(changed);
    }
    changed->set();
  }

  /// apply(State&), of what nobody waits for: it wakes nobody. Does not block.
  template <class F>
  void note(F apply) {
    const MutexLock lock(mutex_);
    apply(state_);
  }

  /// Waits until test(const State&). Ok, or as Event::wait().
  template <class F>
  Status wait_until(F test, const CallOptions& call) const {
    BL_RETURN_IF_ERROR(runtime_.check(call));
    for (;;) {
      std::shared_ptr<Event> changed;
      {
        const MutexLock lock(mutex_);
        if (test(std::as_const(state_))) return Status::ok();
        changed = changed_;
      }
      BL_RETURN_IF_ERROR(changed->wait(call));
    }
  }

 private:
  Runtime& runtime_;
  mutable Mutex mutex_;
  State state_ BL_GUARDED_BY(mutex_);
  // Set by the next change(), which puts a fresh one here: nobody resets what others wait for.
  std::shared_ptr<Event> changed_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::construction
