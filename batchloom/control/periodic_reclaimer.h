// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/store/stream.h"

namespace batchloom::control {

/// Reclaims on a thread of its own, pass after pass: the same as `batchloom store gc --every`. A
/// pass that fails is logged, and the next one tries again: a pipeline does not end for it.
class PeriodicReclaimer {
 public:
  /// `stream` outlives it. `pause`: between two passes, and before the first.
  PeriodicReclaimer(const store::Stream& stream, Duration pause);
  /// Ends a pass that goes on.
  ~PeriodicReclaimer();

 private:
  void work(const std::stop_token& stop);

  const store::Stream& stream_;
  const Duration pause_;
  std::unique_ptr<Task> task_;
};

}  // namespace batchloom::control
