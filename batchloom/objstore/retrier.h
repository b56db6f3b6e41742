// SPDX-License-Identifier: Apache-2.0
// When to try a failed request again, and how long to wait before.
#pragma once

#include <cstdint>
#include <utility>

#include "batchloom/base/metrics.h"
#include "batchloom/base/mutex.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"

namespace batchloom::objstore {

struct RetryOptions {
  /// Bound of the first wait; each further one is twice as long. Shorter hides blips faster, longer
  /// spares a store that is overloaded.
  Duration first_backoff = std::chrono::milliseconds(50);
  Duration max_backoff = std::chrono::seconds(5);  ///< No wait is longer.
  int max_attempts = 8;                            ///< Of one call, the first included; at least 1.
  /// Extra load in the long run. More helps single calls and feeds an outage.
  std::uint64_t retries_per_hundred_calls = 10;
  std::uint64_t retry_burst = 64;  ///< Retries that may be saved up, and are there at the start.
};

/// Keeps retries to a share of the calls: n calls are followed by at most
/// `retry_burst + n * retries_per_hundred_calls / 100` retries, whatever fails. Otherwise a store
/// that answers nobody would get every request `max_attempts` times. Thread-safe; never blocks.
class RetryBudget {
 public:
  explicit RetryBudget(const RetryOptions& options);

  /// A call begins: earns its share of a retry.
  void earn();
  /// Takes one retry out; false when there is none.
  bool spend();

 private:
  const std::uint64_t earned_per_call_;  ///< In hundredths of a retry, as are the next two.
  const std::uint64_t most_;
  Mutex mutex_;
  std::uint64_t saved_ BL_GUARDED_BY(mutex_);
};

/// Repeats what may be repeated. Counters: objstore_retries, objstore_retries_refused (the budget
/// was spent). Thread-safe.
class Retrier {
 public:
  Retrier(Runtime& runtime, Counters& counters, const RetryOptions& options);

  /// Calls `attempt` (which returns a Result) until it ends otherwise than with `unavailable`, the
  /// attempts, the budget or the time to the deadline are spent. Waits between attempts for a
  /// uniformly random part of the backoff ("full jitter"), so that clients that failed together do
  /// not come back together. Returns the last answer; `cancelled` when stopped during a wait.
  template <class Attempt>
  auto run(const CallOptions& call, Attempt attempt) -> decltype(attempt()) {
    budget_.earn();
    for (int made = 1;; ++made) {
      auto result = attempt();
      if (!result.is(ErrorKind::kUnavailable)) return result;
      if (Status go = back_off(made, result.status(), call); !go.is_ok()) return go;
    }
  }

  int max_attempts() const { return options_.max_attempts; }

 private:
  /// Ok after a wait, or what the call ends with: `failure`, or `cancelled`.
  Status back_off(int attempts_made, const Status& failure, const CallOptions& call);

  Runtime& runtime_;
  const RetryOptions options_;
  RetryBudget budget_;
  Counter& retries_;
  Counter& refused_;
};

}  // namespace batchloom::objstore
