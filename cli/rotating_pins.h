// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "batchloom/store/pins.h"

namespace batchloom::cli {

/// Pins as checkpoints make them: a new one now and then, and only the newest ones stay. They are
/// called "step-<N>", as the step that they pin; others of the group are left alone. One thread at
/// a time.
class RotatingPins {
 public:
  /// `stream` outlives it.
  RotatingPins(const store::Stream& stream, std::string group, std::uint64_t keep)
      : stream_(stream), group_(std::move(group)), keep_(keep) {}

  /// Pins `step`, then withdraws all but the newest `keep`, an earlier process's too. The pin of
  /// `step` stays. Those above it count as older than all others: the job has gone back, and will
  /// come by there again. `not_found` where the step was trimmed.
  Status pin(store::Step step, const CallOptions& call);

 private:
  const store::Stream& stream_;
  const std::string group_;
  const std::uint64_t keep_;
};

}  // namespace batchloom::cli
