// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/cursor_reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/store/backoff.h"

namespace batchloom::client {

using store::Step;

CursorReporter::CursorReporter(const store::Stream& stream, std::string group, Step opened_at)
    : stream_(stream),
      group_(std::move(group)),
      reports_(stream.counters().counter("client_reports")),
      failures_(stream.counters().counter("client_report_failures")),
      moved_(stream.runtime().make_event()),
      cursor_(opened_at),
      reported_(opened_at) {
  start();
}

CursorReporter::~CursorReporter() {
  stop();
}

void CursorReporter::report(Step cursor) {
  tell(cursor, stream_.runtime().now());
}

void CursorReporter::pass(Step cursor) {
  tell(cursor, stream_.runtime().now() + kLongestSilence);
}

void CursorReporter::tell(Step cursor, Time due) {
  {
    const MutexLock lock(mutex_);
    cursor_ = cursor;
    if (due_ <= due) return;  // It is awaited already.
    due_ = due;
  }
  moved_->set();
}

void CursorReporter::start() {
  reporter_ = stream_.runtime().spawn("cursor-reporter", [this](const std::stop_token& stop) {
    report_loop({.deadline = kNever, .stop = stop});
  });
}

Status CursorReporter::go_back(Step cursor, const CallOptions& call) {
  // No report may come between, and raise keep_from. One that is on its way to the store is too
  // late once another was written: so this one is written first, and only then keep_from is judged.
  stop();
  const Status kept = keep_from_on(cursor, call);
  {
    const MutexLock lock(mutex_);
    if (kept.is_ok()) cursor_ = cursor;
    reported_ = kept.is_ok() ? std::optional(cursor) : std::nullopt;
    due_ = stream_.runtime().now();
  }
  start();
  return kept;
}

Status CursorReporter::keep_from_on(Step cursor, const CallOptions& call) {
  const Result<store::LiveCursor> told = store::report_live_cursor(stream_, group_, cursor, call);
  const bool closed = told.is(ErrorKind::kConflict);
  if (!told.is_ok() && !closed) return told.status();
  if (!closed && told->keep_from <= cursor) return Status::ok();
  return store::open_live_cursor(stream_, group_, cursor, call).status();
}

void CursorReporter::stop() {
  reporter_->request_stop();
  reporter_->join();
}

Step CursorReporter::take_wanted() {
  const MutexLock lock(mutex_);
  due_ = kNever;  // What is passed from now on is news.
  return cursor_;
}

void CursorReporter::report_loop(const CallOptions& call) {
  while (wait_for_news(call).is_ok() && repeat_report(call).is_ok()) {
  }
}

Status CursorReporter::wait_for_news(const CallOptions& call) {
  Runtime& runtime = stream_.runtime();
  for (;;) {
    BL_RETURN_IF_ERROR(runtime.check(call));
    Time until = call.deadline;
    {
      const MutexLock lock(mutex_);
      if (reported_ == cursor_) due_ = kNever;
      if (due_ <= runtime.now()) return Status::ok();
      until = std::min(until, due_);
      moved_->reset();
    }
    const Status moved = moved_->wait({.deadline = until, .stop = call.stop});
    if (!moved.is_ok() && !moved.is(ErrorKind::kUnavailable)) return moved;  // Else it is due.
  }
}

Status CursorReporter::repeat_report(const CallOptions& call) {
  store::Backoff backoff(stream_.runtime());
  for (bool first = true;; first = false) {
    Status reported = report_now(call);
    if (reported.is_ok() || reported.is(ErrorKind::kCancelled)) return reported;
    failures_.add();
    if (first) {
      log_warning(
          fmt::format("group {}: its live cursor could not be reported and will be again; "
                      "producers may wait for it: {}",
                      group_, reported.to_string()));
    }
    BL_RETURN_IF_ERROR(backoff.wait(call));
  }
}

Status CursorReporter::report_now(const CallOptions& call) {
  const Step cursor = take_wanted();
  Result<store::LiveCursor> told = store::report_live_cursor(stream_, group_, cursor, call);
  if (told.is(ErrorKind::kConflict)) {
    log_warning(
        fmt::format("group {}: its live cursor was closed, though it is being read; it is "
                    "opened again at step {}",
                    group_, cursor.value));
    told = store::open_live_cursor(stream_, group_, cursor, call);
  }
  BL_RETURN_IF_ERROR(told.status());
  reports_.add();
  const MutexLock lock(mutex_);
  reported_ = cursor;
  return Status::ok();
}

}  // namespace batchloom::client
