// SPDX-License-Identifier: Apache-2.0
// The world as Batchloom sees it: time, threads, waiting and randomness.
//
// Everything outside `base` asks a Runtime for these instead of the standard library, so that the
// same blocking code runs on real threads (real_runtime.h) and under a seeded scheduler
// (sim_runtime.h). Every call that can block takes `CallOptions`: it ends with `unavailable` once
// the deadline has passed and with `cancelled` once the stop token was triggered.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "batchloom/base/status.h"

namespace batchloom {

/// A monotonic clock without a `now()` of its own: only a Runtime can tell the time.
struct RuntimeClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<RuntimeClock>;
  static constexpr bool is_steady = true;
};
using Duration = RuntimeClock::duration;
using Time = RuntimeClock::time_point;

/// A deadline that never passes.
inline constexpr Time kNever = Time::max();

/// How long a blocking call may take, and who may end it early.
struct CallOptions {
  Time deadline = kNever;
  std::stop_token stop = {};
};

/// A flag that threads can wait for. Stays set until reset. Thread-safe.
class Event {
 public:
  virtual ~Event() = default;
  virtual void set() = 0;
  virtual void reset() = 0;
  /// Blocks until set: ok; `unavailable` at the deadline; `cancelled` by the stop token.
  virtual Status wait(const CallOptions& call) = 0;
};

/// A running thread. The destructor requests a stop and joins. Owned by its spawner.
class Task {
 public:
  virtual ~Task() = default;
  virtual void request_stop() = 0;
  /// Blocks until the thread's function has returned. Idempotent.
  virtual void join() = 0;
};

/// Thread-safe.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual Time now() = 0;

  /// Blocks until `call.deadline`: ok; `cancelled` by the stop token.
  virtual Status sleep_until(const CallOptions& call) = 0;

  /// Runs `body` on a new thread. `body` should return soon after its stop token is triggered.
  virtual std::unique_ptr<Task> spawn(std::string name,
                                      std::function<void(std::stop_token)> body) = 0;

  virtual std::unique_ptr<Event> make_event() = 0;

  /// 64 uniformly random bits, unpredictable on real machines and seeded in a simulation.
  virtual std::uint64_t random() = 0;

  /// Ok, or why a call that starts now must end at once: its stop token was triggered, its deadline
  /// has passed, or (in a simulation) the process has crashed.
  virtual Status check(const CallOptions& call) = 0;
};

}  // namespace batchloom
