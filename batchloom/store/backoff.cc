// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/backoff.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchloom::store {
namespace {

constexpr Duration kLongest = std::chrono::seconds(2);

}  // namespace

Status cause_of(const Result<objstore::PutReply>& reply) {
  if (!reply.is_ok()) return reply.status();
  if (reply->outcome == objstore::PutOutcome::kUnknown)
    return Status::unknown_outcome(reply->detail);
  return Status::conflict("the condition failed");
}

Status gave_up(std::string_view what, const Status& ended, const Status& cause) {
  return {ended.kind(),
          fmt::format("{}: {}; the last attempt: {}", what, ended.message(), cause.to_string())};
}

Status Backoff::wait(const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const auto pause = Duration(
      static_cast<Duration::rep>(runtime_.random() % static_cast<std::uint64_t>(limit_.count())));
  limit_ = std::min(limit_ * 2, kLongest);
  const Time wake = runtime_.now() + pause;
  if (wake >= call.deadline)
    return Status::unavailable("the deadline passes before the next attempt");
  return runtime_.sleep_until({.deadline = wake, .stop = call.stop});
}

}  // namespace batchloom::store
