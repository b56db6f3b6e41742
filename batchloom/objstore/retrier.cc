// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/retrier.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::objstore {
namespace {

constexpr std::uint64_t kOneRetry = 100;

/// Bound of the wait after the `attempts_made`-th attempt.
Duration backoff_bound(const RetryOptions& options, int attempts_made) {
  Duration bound = options.first_backoff;
  for (int i = 1; i < attempts_made && bound < options.max_backoff; ++i) bound *= 2;
  return std::min(bound, options.max_backoff);
}

}  // namespace

RetryBudget::RetryBudget(const RetryOptions& options)
    : earned_per_call_(options.retries_per_hundred_calls),
      most_(options.retry_burst * kOneRetry),
      saved_(most_) {}

void RetryBudget::earn() {
  const MutexLock lock(mutex_);
  saved_ = std::min(most_, saved_ + earned_per_call_);
}

bool RetryBudget::spend() {
  const MutexLock lock(mutex_);
  if (saved_ < kOneRetry) return false;
  saved_ -= kOneRetry;
  return true;
}

Retrier::Retrier(Runtime& runtime, Counters& counters, const RetryOptions& options)
    : runtime_(runtime),
      options_(options),
      budget_(options),
      retries_(counters.counter("objstore_retries")),
      refused_(counters.counter("objstore_retries_refused")) {}

Status Retrier::back_off(int attempts_made, const Status& failure, const CallOptions& call) {
  if (attempts_made >= options_.max_attempts) {
    return failure.with_context(fmt::format("gave up after {} attempts", attempts_made));
  }
  const auto bound = static_cast<std::uint64_t>(backoff_bound(options_, attempts_made).count());
  const Duration wait(static_cast<Duration::rep>(runtime_.random() % (bound + 1)));
  const Time due = runtime_.now() + wait;
  if (due >= call.deadline) {
    return failure.with_context(fmt::format("no time for another attempt after {}", attempts_made));
  }
  if (!budget_.spend()) {
    refused_.add();
    return failure.with_context(
        fmt::format("retry budget spent after {} attempts ({} retries per 100 calls are allowed)",
                    attempts_made, options_.retries_per_hundred_calls));
  }
  BL_RETURN_IF_ERROR(runtime_.sleep_until({.deadline = due, .stop = call.stop}));
  retries_.add();
  return Status::ok();
}

}  // namespace batchloom::objstore
