// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::store {

/// True for errors after which the same request may well succeed: `unavailable`, and `conflict` (a
/// conditional put that met another one under way).
inline bool is_transient(const Status& error) {
  return error.is(ErrorKind::kUnavailable) || error.is(ErrorKind::kConflict);
}

/// Why a put has to be repeated: its error, or what its outcome leaves open.
Status cause_of(const Result<objstore::PutReply>& reply);

/// The end of repeating: `ended` says why no further attempt is made, `cause` why one was needed.
/// For the caller: `ended`'s kind, and "<what>: <ended>; the last attempt: <cause>".
Status gave_up(std::string_view what, const Status& ended, const Status& cause);

/// Waits longer and longer between attempts: a random time up to 10 ms, 20 ms, ... 2 s. One thread
/// at a time.
class Backoff {
 public:
  explicit Backoff(Runtime& runtime) : runtime_(runtime) {}

  /// Ok after the pause; `unavailable` where the deadline has passed or lies within it; `cancelled`
  /// by the stop token.
  Status wait(const CallOptions& call);

 private:
  Runtime& runtime_;
  Duration limit_ = std::chrono::milliseconds(10);
};

}  // namespace batchloom::store
