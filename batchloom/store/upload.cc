// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/upload.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/backoff.h"
#include "batchloom/store/damage.h"

namespace batchloom::store {
namespace {

using objstore::PutCondition;
using objstore::PutOutcome;

// Ok where what is there can only be ours; `unavailable` where it has to be put again.
Status check_earlier_attempt(const Stream& stream, std::string_view key, std::size_t size_bytes,
                             const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto info, stream.objects().head(key, call));
  if (!info) return Status::unavailable("reported as taken, then missing");
  if (info->size_bytes == size_bytes) return Status::ok();
  return corrupt_at(
      key, std::min<std::uint64_t>(info->size_bytes, size_bytes),
      fmt::format("taken by another object, of {} bytes where ours has {}; does the object store "
                  "keep what it acknowledges? (batchloom store probe)",
                  info->size_bytes, size_bytes));
}

// Ok; a transient error, after which it is to be done again; or another error.
Status upload_once(const Stream& stream, std::string_view key, std::span<const ByteSpan> parts,
                   std::size_t size_bytes, const CallOptions& call) {
  const auto reply = stream.objects().put(key, parts, PutCondition::absent(), call);
  if (reply.is_ok() && reply->outcome == PutOutcome::kApplied) return Status::ok();
  if (reply.is_ok() && reply->outcome == PutOutcome::kConditionFailed) {
    return check_earlier_attempt(stream, key, size_bytes, call);
  }
  return cause_of(reply);
}

}  // namespace

Status upload_unique(const Stream& stream, std::string_view key, std::span<const ByteSpan> parts,
                     const CallOptions& call) {
  std::size_t size_bytes = 0;
  for (const ByteSpan part : parts) size_bytes += part.size();
  const std::string what = fmt::format("uploading {}", key);
  Backoff backoff(stream.runtime());
  for (;;) {
    const Status attempt = upload_once(stream, key, parts, size_bytes, call);
    if (attempt.is_ok()) return attempt;
    if (!is_transient(attempt) && !attempt.is(ErrorKind::kUnknownOutcome)) {
      return attempt.with_context(what);
    }
    const Status paused = backoff.wait(call);
    if (!paused.is_ok()) return gave_up(what, paused, attempt);
  }
}

}  // namespace batchloom::store
