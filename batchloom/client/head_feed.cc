// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/head_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace batchloom::client {

using store::Head;
using store::HeadPtr;

HeadFeed::HeadFeed(const store::Stream& stream, PollIntervals intervals)
    : stream_(stream),
      intervals_(intervals),
      polls_(stream.counters().counter("client_polls")),
      reader_(stream),
      pause_(intervals.first),
      woken_(stream.runtime().make_event()) {}

bool HeadFeed::Wanted::is_met_by(const Head& head) const {
  return head.slot >= slot && (!step || head.next_step > *step || head.ended);
}

HeadPtr HeadFeed::seen() const {
  const MutexLock lock(mutex_);
  return seen_;
}

Result<HeadPtr> HeadFeed::wait_for_step(Step step, const CallOptions& call) {
  return wait_for({.step = step, .slot = {}}, call);
}

Result<HeadPtr> HeadFeed::wait_for_slot(Slot slot, const CallOptions& call) {
  return wait_for({.step = {}, .slot = slot}, call);
}

Result<HeadPtr> HeadFeed::refresh(const CallOptions& call) {
  Result<HeadPtr> head = read(call);
  wake();
  return head;
}

Result<HeadPtr> HeadFeed::wait_for(const Wanted& wanted, const CallOptions& call) {
  for (;;) {
    std::shared_ptr<Event> woken;
    {
      const MutexLock lock(mutex_);
      if (seen_ != nullptr && wanted.is_met_by(seen_->head)) return seen_;
      if (std::exchange(polling_, true)) woken = woken_;
    }
    const Status ended = woken != nullptr ? woken->wait(call) : take_turn(call);
    if (!ended.is_ok()) return gave_up(wanted, ended, call);
  }
}

Status HeadFeed::take_turn(const CallOptions& call) {
  const Status ended = poll(call);
  {
    const MutexLock lock(mutex_);
    polling_ = false;
  }
  wake();
  return ended;
}

Status HeadFeed::poll(const CallOptions& call) {
  Time due;
  std::shared_ptr<Event> woken;
  {
    const MutexLock lock(mutex_);
    due = due_;
    woken = woken_;
  }
  if (due > stream_.runtime().now()) {
    const Status waited =
        woken->wait({.deadline = std::min(due, call.deadline), .stop = call.stop});
    if (!waited.is(ErrorKind::kUnavailable)) return waited;  // News, or a stop.
  }
  BL_RETURN_IF_ERROR(stream_.runtime().check(call));
  return read(call).status();
}

Result<HeadPtr> HeadFeed::read(const CallOptions& call) {
  polls_.add();
  Result<HeadPtr> head = reader_.latest(call);
  const Time now = stream_.runtime().now();
  const MutexLock lock(mutex_);
  const bool is_news = head.is_ok() && (seen_ == nullptr || seen_->head.slot < (*head)->head.slot);
  if (is_news) {
    seen_ = *head;
    pause_ = intervals_.first;
  }
  due_ = now + pause_;
  pause_ = std::min<Duration>(2 * pause_, intervals_.longest);
  return head;
}

void HeadFeed::wake() {
  std::shared_ptr<Event> woken = stream_.runtime().make_event();
  {
    const MutexLock lock(mutex_);
    woken_.swap(woken);
  }
  woken->set();
}

Status HeadFeed::gave_up(const Wanted& wanted, const Status& ended, const CallOptions& call) const {
  if (!ended.is(ErrorKind::kUnavailable) || stream_.runtime().now() < call.deadline) return ended;
  const std::string what = wanted.step
                               ? fmt::format("step {} is not committed yet", wanted.step->value)
                               : fmt::format("there is no slot {} yet", wanted.slot.value);
  const HeadPtr newest = seen();
  if (newest == nullptr) {
    return Status::unavailable(fmt::format("{}: the deadline passed before a head was read", what));
  }
  return Status::unavailable(
      fmt::format("{}: the deadline passed; the newest head seen, {}, ends before step {}", what,
                  store::manifest_key(newest->head.slot), newest->head.next_step.value));
}

}  // namespace batchloom::client
