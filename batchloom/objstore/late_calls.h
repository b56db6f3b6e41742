// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/base/runtime.h"

namespace batchloom::objstore {

/// Runs calls after a delay, each on a task of its own, so that they outlive whoever issued them: a
/// request that hangs in the network after its sender gave up. Thread-safe.
class LateCalls {
 public:
  /// How many may wait at a time.
  static constexpr std::size_t kMaxWaiting = 64;

  explicit LateCalls(Runtime& runtime);
  /// Runs at once what still waits, then joins. Blocks as long as those calls do.
  ~LateCalls();
  LateCalls(const LateCalls&) = delete;
  LateCalls& operator=(const LateCalls&) = delete;

  /// Runs `body` once `delay` has passed. False, and `body` is dropped, while kMaxWaiting others
  /// wait.
  bool start(Duration delay, std::function<void()> body);

 private:
  struct Late;

  /// Makes room for one more; hands back what has ended, to be joined without the lock.
  bool reserve(std::vector<std::unique_ptr<Late>>& ended);

  Runtime& runtime_;
  Mutex mutex_;
  std::size_t reserved_ BL_GUARDED_BY(mutex_) = 0;  ///< Being started; not yet in `late_`.
  std::vector<std::unique_ptr<Late>> late_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::objstore
