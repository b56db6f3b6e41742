// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/lead_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"

namespace batchloom::control {
namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::seconds kLongestTrust{1};

}  // namespace

std::optional<store::Step> slowest_cursor(store::Step first_step,
                                          std::span<const store::LiveCursor> cursors) {
  std::optional<store::Step> slowest;
  for (const store::LiveCursor& cursor : cursors) {
    if (cursor.closed || cursor.cursor < first_step) continue;
    slowest = std::min(slowest.value_or(cursor.cursor), cursor.cursor);
  }
  return slowest;
}

store::Step furthest_cursor(store::Step first_step, std::span<const store::LiveCursor> cursors) {
  store::Step furthest = first_step;
  for (const store::LiveCursor& cursor : cursors) furthest = std::max(furthest, cursor.cursor);
  return furthest;
}

LeadGate::LeadGate(const store::Stream& stream, LeadGateOptions options)
    : stream_(stream),
      options_(std::move(options)),
      reader_(stream),
      next_step_(options_.next_step) {}

bool LeadGate::has_room() const {
  const MutexLock lock(mutex_);
  return next_step_ + handed_out_ < slowest_ + *options_.lead;
}

std::uint64_t LeadGate::lead() const {
  if (!options_.lead) return 0;
  const MutexLock lock(mutex_);
  const std::uint64_t ahead = next_step_.value + handed_out_;
  return ahead - std::min(ahead, slowest_.value);
}

Status LeadGate::refresh(const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader_.latest(call));
  BL_ASSIGN_OR_RETURN(const auto cursors, store::list_live_cursors(stream_, call));
  const store::Step first_step = head->head.first_step;
  const auto slowest = slowest_cursor(first_step, cursors);
  someone_reads_ = slowest.has_value();
  slowest_ = slowest.value_or(furthest_cursor(first_step, cursors));
  due_ = stream_.runtime().now() + kLongestTrust;
  const MutexLock lock(mutex_);
  next_step_ = std::max(next_step_, head->head.next_step);
  return Status::ok();
}

Result<bool> LeadGate::try_take(std::uint64_t steps, const CallOptions& call) {
  if (options_.lead) {
    if (!has_room() || stream_.runtime().now() >= due_) BL_RETURN_IF_ERROR(refresh(call));
    if (!has_room()) return false;
  }
  said_ = false;
  const MutexLock lock(mutex_);
  handed_out_ += steps;
  return true;
}

Status LeadGate::wait(std::uint64_t steps, const CallOptions& call) {
  Runtime& runtime = stream_.runtime();
  BL_RETURN_IF_ERROR(runtime.check(call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(const bool taken, try_take(steps, call));
    if (taken) return Status::ok();
    if (!someone_reads_ && !std::exchange(said_, true)) {
      log_info(fmt::format("waiting for a consumer of {}", options_.url));
    }
    BL_RETURN_IF_ERROR(runtime.sleep_until(
        {.deadline = std::min<Time>(runtime.now() + kPause, call.deadline), .stop = call.stop}));
    BL_RETURN_IF_ERROR(runtime.check(call));
  }
}

void LeadGate::give_back(std::uint64_t steps) {
  const MutexLock lock(mutex_);
  handed_out_ -= steps;
}

void LeadGate::note_commit(std::uint64_t steps, store::Step next_step) {
  const MutexLock lock(mutex_);
  handed_out_ -= steps;
  next_step_ = std::max(next_step_, next_step);
}

}  // namespace batchloom::control
