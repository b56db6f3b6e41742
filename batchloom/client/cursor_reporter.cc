// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/cursor_reporter.h"

#include <fmt/format.h>

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
  {
    const MutexLock lock(mutex_);
    cursor_ = cursor;
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

Step CursorReporter::wanted() const {
  const MutexLock lock(mutex_);
  return cursor_;
}

void CursorReporter::report_loop(const CallOptions& call) {
  while (wait_for_news(call).is_ok() && repeat_report(call).is_ok()) {
  }
}

Status CursorReporter::wait_for_news(const CallOptions& call) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (reported_ != cursor_) return Status::ok();
      moved_->reset();
    }
    BL_RETURN_IF_ERROR(moved_->wait(call));
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
  const Step cursor = wanted();
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
