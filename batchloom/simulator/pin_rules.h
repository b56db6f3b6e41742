// SPDX-License-Identifier: Apache-2.0
// Pins and live cursors, rebuilt from the bucket's changes, and what they promise.
//
//   I12  all steps from a pin on stay readable, from when its writer was told so until it is
//        removed; a live cursor promises the same of keep_from, until that rises or the cursor is
//        closed or opened anew. A pin is never overwritten, a cursor never deleted, and its counter
//        grows with every change. A cursor never says that its group is further than it was handed
//        steps; and once opened, keep_from only rises, to a pin of the group that it has reached.
//
// Whether steps are readable is for the first step to say: nothing at or above it may go (I10).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "batchloom/base/bytes.h"
#include "batchloom/simulator/violations.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"

namespace batchloom::simulator {

/// One thread at a time.
class PinRules {
 public:
  explicit PinRules(Violations& violations) : violations_(violations) {}

  /// A change of a key below pin/.
  void on_put(const store::StreamUuid& stream, std::string_view key, const Bytes& bytes);
  void on_remove(std::string_view key);

  /// A process was told that the pin holds.
  void pin_told(const store::Pin& pin);
  /// A process is about to open the group's cursor at this step.
  void cursor_opening(const std::string& group, store::Step step);
  /// The rank that reports for the group was handed every step before this one that is not skipped.
  void group_reached(const std::string& group, store::Step step);
  /// A process was told that the group's cursor was opened at this step.
  void cursor_told(const std::string& group, store::Step step);

  /// Whether a stream that begins at `first_step` keeps every promise.
  void check(store::Step first_step);

  /// The lowest step that the bucket's pins and open cursors at or above `first_step` name; whether
  /// somebody was told or not.
  std::optional<store::Step> lowest_kept(store::Step first_step) const;
  /// Pins in the bucket.
  std::uint64_t pins() const;
  /// Times that an open cursor was moved.
  std::uint64_t reports() const { return reports_; }

 private:
  struct PinFacts {
    store::Step step;
    bool exists = true;
    bool told = false;
  };
  struct CursorFacts {
    store::LiveCursor cursor;
    std::optional<store::Step> promise;
  };
  struct GroupFacts {
    std::set<store::Step> opened_at;  // Or tried to.
    store::Step reached;              // At most, of all processes so far.
  };

  void on_pin(const store::StreamUuid& stream, const store::PinName& name, const Bytes& bytes);
  void on_cursor(const store::StreamUuid& stream, const std::string& group, const Bytes& bytes);
  void check_reached(const store::LiveCursor& now);
  /// `before`: null for a group's first.
  void check_keep_from(const store::LiveCursor* before, const store::LiveCursor& now);
  bool was_pinned(const std::string& group, store::Step step) const;

  Violations& violations_;
  std::map<store::PinName, PinFacts> pins_;  // Every one that ever was.
  std::map<std::string, CursorFacts> cursors_;
  std::map<std::string, GroupFacts> groups_;
  std::uint64_t reports_ = 0;
};

}  // namespace batchloom::simulator
