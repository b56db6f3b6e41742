// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/retain_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/base/quantity.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"

namespace batchloom::control {
namespace {

constexpr std::chrono::milliseconds kRetainPause{100};
constexpr std::chrono::seconds kLongestRetainTrust{1};

}  // namespace

RetainGate::RetainGate(const store::Stream& stream, RetainGateOptions options)
    : stream_(stream), options_(std::move(options)), reader_(stream), segments_(stream) {}

bool RetainGate::has_room() const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = held_bytes_ + under_way_ * largest_bytes_;
  for (const Held& object : unseen_) bytes += object.bytes;
  // Before anything was committed nobody knows how large objects are: one at a time.
  const bool knows_size = largest_bytes_ > 0 || under_way_ == 0;
  return bytes == 0 ? under_way_ == 0 : bytes < *options_.max_bytes && knows_size;
}

Status RetainGate::count(const store::Head& head, const CallOptions& call) {
  while (!held_.empty() && held_.front().end_step <= head.first_step) held_.pop_front();
  counted_to_ = std::max(counted_to_, head.first_step);
  while (counted_to_ < head.next_step) {
    BL_ASSIGN_OR_RETURN(const store::Entry entry, segments_.find(head, counted_to_, call));
    held_.push_back({entry.end_step(), entry.size_bytes});
    counted_to_ = entry.end_step();
  }
  return Status::ok();
}

Status RetainGate::refresh(const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(store::HeadPtr head, reader_.latest(call));
  for (;;) {
    Status counted = count(head->head, call);
    if (counted.is_ok()) break;
    // What is missing may have been trimmed since.
    BL_ASSIGN_OR_RETURN(const store::HeadPtr newer, reader_.latest(call));
    if (newer->head.slot == head->head.slot) return counted;
    head = newer;
  }
  due_ = stream_.runtime().now() + kLongestRetainTrust;
  const MutexLock lock(mutex_);
  held_bytes_ = 0;
  for (const Held& object : held_) held_bytes_ += object.bytes;
  std::erase_if(unseen_, [&](const Held& object) { return object.end_step <= counted_to_; });
  return Status::ok();
}

Result<bool> RetainGate::try_take(const CallOptions& call) {
  if (options_.max_bytes) {
    if (!has_room() || stream_.runtime().now() >= due_) BL_RETURN_IF_ERROR(refresh(call));
    if (!has_room()) return false;
  }
  said_ = false;
  const MutexLock lock(mutex_);
  ++under_way_;
  return true;
}

Result<std::string> RetainGate::what_keeps_it(const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(stream_, call));
  BL_ASSIGN_OR_RETURN(const auto cursors, store::list_live_cursors(stream_, call));
  store::Step kept_from(UINT64_MAX);
  std::string keeper = "no pin says what may go: checkpoints are to make them";
  for (const store::Pin& pin : pins) {
    if (pin.step >= kept_from) continue;
    kept_from = pin.step;
    keeper = fmt::format("pin '{}' of group '{}' keeps step {} and what follows", pin.name.id,
                         pin.name.group, pin.step.value);
  }
  for (const store::LiveCursor& cursor : cursors) {
    if (cursor.closed || cursor.keep_from >= kept_from) continue;
    kept_from = cursor.keep_from;
    keeper = fmt::format("group '{}', which reads, keeps step {} and what follows", cursor.group,
                         cursor.keep_from.value);
  }
  return keeper;
}

Status RetainGate::wait(const CallOptions& call) {
  Runtime& runtime = stream_.runtime();
  for (;;) {
    BL_RETURN_IF_ERROR(runtime.check(call));
    BL_ASSIGN_OR_RETURN(const bool taken, try_take(call));
    if (taken) return Status::ok();
    if (!std::exchange(said_, true)) {
      BL_ASSIGN_OR_RETURN(const std::string keeper, what_keeps_it(call));
      log_info(
          fmt::format("waiting for room: {} holds all that it may, {} "
                      "(store.retain.max_bytes); {}",
                      options_.url, bytes_text(*options_.max_bytes), keeper));
    }
    BL_RETURN_IF_ERROR(runtime.sleep_until(
        {.deadline = std::min<Time>(runtime.now() + kRetainPause, call.deadline),
         .stop = call.stop}));
  }
}

void RetainGate::give_back(std::uint64_t objects) {
  const MutexLock lock(mutex_);
  under_way_ -= objects;
}

void RetainGate::note_commit(std::uint64_t bytes, store::Step next_step) {
  const MutexLock lock(mutex_);
  --under_way_;
  if (!options_.max_bytes) return;
  largest_bytes_ = std::max(largest_bytes_, bytes);
  unseen_.push_back({next_step, bytes});
}

}  // namespace batchloom::control
