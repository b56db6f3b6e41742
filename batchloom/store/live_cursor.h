// SPDX-License-Identifier: Apache-2.0
// Live cursors: how far each group has come, and what it still needs while it runs.
//
// One object per group, replaced by If-Match and never deleted, only closed. `cursor` bounds the
// lead of producers. `keep_from` stops trimming like a pin: it is the step at which the group
// opened, until a report raises it.
//
//  1. Opening writes the step at which the group opens, and then takes the handshake of pins.h:
//     keep_from may have been lowered. What came too late is closed again.
//  2. A report raises keep_from to the step of the group's oldest pin that is not below it, if that
//     is not above the reported cursor, and else leaves it. Raising needs no handshake. Older pins,
//     if any, keep their steps by themselves, or came too late; one above the cursor is of an
//     earlier run, and slower ranks still need the steps before it.
//  3. Each write carries fresh random bits. A put that lost its condition, or its reply, is settled
//     by reading: what bears the bits of this call is its own. And no content ever comes back, so
//     that a put which arrives late meets another etag than the one it was made for.
//
// One process of a group opens and reports. Of several, each goes on from what the other wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/store/manifest_reader.h"

namespace batchloom::store {

/// A group's cursor as stored.
struct LiveCursor {
  std::string group;
  Step keep_from;             ///< The first step that the group may still need.
  Step cursor;                ///< The step after the last that next() returned.
  std::uint64_t counter = 0;  ///< Grows with every report: a group that is alive.
  bool closed = false;        ///< Neither bounds the lead nor keeps steps.
  friend bool operator==(const LiveCursor&, const LiveCursor&) = default;
};

/// Opens the group's cursor at `step`, whatever it was before, and keeps steps from there on.
/// `not_found` where `step` was trimmed, naming first_step; `invalid` for a bad name, and where the
/// object store cannot replace on condition. After another error it may be open, and may keep
/// nothing: open it again.
Result<LiveCursor> open_live_cursor(const Stream& stream, const std::string& group, Step step,
                                    const CallOptions& call);

/// Moves the group's cursor to `step`, and `keep_from` to the group's oldest pin that is not below
/// it, if that is not above `step`. To go back below `keep_from`, open it again. `conflict` where
/// it was closed meanwhile, `not_found` where the group has none, `unknown_outcome` where it may
/// have been moved; otherwise as open_live_cursor(). Safe to repeat.
Result<LiveCursor> report_live_cursor(const Stream& stream, const std::string& group, Step step,
                                      const CallOptions& call);

/// Closes it; `not_found` where the group has none. Idempotent. Other errors as of
/// report_live_cursor().
Status close_live_cursor(const Stream& stream, const std::string& group, const CallOptions& call);

/// All groups', closed ones too, by name. `corruption` for a damaged one, and for one that is gone
/// after it was listed: nothing removes a cursor, so what it kept is unknown.
Result<std::vector<LiveCursor>> list_live_cursors(const Stream& stream, const CallOptions& call);

/// nullopt where the group has none; `invalid` for a bad name, `corruption` for a damaged one.
Result<std::optional<LiveCursor>> read_live_cursor(const Stream& stream, const std::string& group,
                                                   const CallOptions& call);

}  // namespace batchloom::store
