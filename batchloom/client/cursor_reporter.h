// SPDX-License-Identifier: Apache-2.0
// Tells the store how far a group has come, on a thread of its own: a slow or failing store holds
// up no next().
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "batchloom/base/mutex.h"
#include "batchloom/store/live_cursor.h"

namespace batchloom::client {

/// A position that was passed goes untold for so long at most.
inline constexpr std::chrono::seconds kLongestSilence{1};

/// Reports the newest position, and repeats a report that failed until it or a newer one gets
/// through: a producer may wait for it. A cursor that somebody closed meanwhile is opened again,
/// since this group is alive. Counters: client_reports, client_report_failures (the first of a
/// series is logged). Thread-safe.
class CursorReporter {
 public:
  /// The group's cursor is open and stands at `opened_at`. `stream` outlives it.
  CursorReporter(const store::Stream& stream, std::string group, store::Step opened_at);
  /// stop().
  ~CursorReporter();
  CursorReporter(const CursorReporter&) = delete;
  CursorReporter& operator=(const CursorReporter&) = delete;

  /// The group is at `cursor` now. Does not block.
  void report(store::Step cursor);
  /// The same, and it will do to tell so within kLongestSilence, with what comes until then. Does
  /// not block.
  void pass(store::Step cursor);

  /// The group goes back to `cursor`, and is told whether the steps from there on are kept: opens
  /// the cursor again where it keeps only later ones. `not_found` where they were trimmed; other
  /// errors as of report_live_cursor(), and all are safe to repeat. After an error the group is
  /// where it was, which is reported anew. After stop(), too: reporting begins again.
  Status go_back(store::Step cursor, const CallOptions& call);

  /// No further reports; waits for the thread's end, with a report under way. Idempotent.
  void stop();

 private:
  void start();
  void tell(store::Step cursor, Time due);
  void report_loop(const CallOptions& call);
  Status wait_for_news(const CallOptions& call);
  Status repeat_report(const CallOptions& call);
  Status report_now(const CallOptions& call);
  Status keep_from_on(store::Step cursor, const CallOptions& call);
  store::Step take_wanted();

  const store::Stream& stream_;
  const std::string group_;
  Counter& reports_;
  Counter& failures_;
  const std::unique_ptr<Event> moved_;

  Mutex mutex_;
  store::Step cursor_ BL_GUARDED_BY(mutex_);
  std::optional<store::Step> reported_ BL_GUARDED_BY(mutex_);  // Absent: whatever stands there.
  Time due_ BL_GUARDED_BY(mutex_) = kNever;                    // When the news is to be told.

  std::unique_ptr<Task> reporter_;  // Last: it uses all of the above.
};

}  // namespace batchloom::client
