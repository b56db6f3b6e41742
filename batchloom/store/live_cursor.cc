// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/live_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/store/backoff.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/list_keys.h"
#include "batchloom/store/pin_codec.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {
namespace {

using objstore::PutCondition;
using objstore::PutOutcome;

struct TaggedCursor {
  StoredCursor stored;
  objstore::Etag etag;
};

Result<std::optional<TaggedCursor>> read_tagged(const Stream& stream, const std::string& group,
                                                const CallOptions& call) {
  const std::string key = live_cursor_key(group);
  return read_object(
      stream.objects(), {key, kSmallObjectMaxBytes}, call,
      [&](const objstore::ObjectData& data) -> Result<TaggedCursor> {
        BL_ASSIGN_OR_RETURN(StoredCursor stored,
                            decode_live_cursor(stream.uuid(), group, data.bytes));
        if (!data.etag) {
          return Status::internal("the object store gave no etag for a whole read of " + key);
        }
        return TaggedCursor{.stored = std::move(stored), .etag = *data.etag};
      });
}

/// What is to stand there, given what does (null: nothing yet); nullopt where that may stay.
using CursorChange = std::function<Result<std::optional<LiveCursor>>(const StoredCursor* before)>;

// One change of one group's cursor, in as many attempts as it takes.
class CursorWriter {
 public:
  CursorWriter(const Stream& stream, const std::string& group, CursorChange change)
      : stream_(stream),
        group_(group),
        key_(live_cursor_key(group)),
        change_(std::move(change)),
        nonce_(stream.random_nonce()) {}

  Result<StoredCursor> run(const CallOptions& call) {
    Backoff backoff(stream_.runtime());
    for (;;) {
      const auto before = read_tagged(stream_, group_, call);
      if (!before.is_ok()) return failure(before.status());
      const StoredCursor* there = *before ? &(**before).stored : nullptr;
      if (there != nullptr && there->nonce == nonce_) return *there;  // An earlier attempt's.
      BL_ASSIGN_OR_RETURN(const std::optional<LiveCursor> after, change_(there));
      if (!after) {
        BL_CHECK(there != nullptr, "only what is there can stay");
        return *there;
      }
      const StoredCursor wanted{.cursor = *after, .nonce = nonce_};
      const auto reply = put(wanted, *before, call);
      if (reply.is_ok() && reply->outcome == PutOutcome::kApplied) return wanted;
      if (!reply.is_ok() && !is_transient(reply.status())) return failure(reply.status());
      unsettled_ |= reply.is_ok() && reply->outcome == PutOutcome::kUnknown;
      const Status paused = backoff.wait(call);
      if (!paused.is_ok()) return failure(gave_up("putting it", paused, cause_of(reply)));
    }
  }

 private:
  Result<objstore::PutReply> put(const StoredCursor& wanted,
                                 const std::optional<TaggedCursor>& before,
                                 const CallOptions& call) {
    const Bytes bytes = encode_live_cursor(stream_.uuid(), wanted);
    const PutCondition condition =
        before ? PutCondition::matches(before->etag) : PutCondition::absent();
    return objstore::put_bytes(stream_.objects(), key_, bytes, condition, call);
  }

  Status failure(const Status& error) const {
    if (!unsettled_) return error.with_context("writing " + key_);
    return Status::unknown_outcome(fmt::format(
        "writing {}: it may have been written ({}); do the same again", key_, error.to_string()));
  }

  const Stream& stream_;
  const std::string& group_;
  const std::string key_;
  const CursorChange change_;
  const Nonce nonce_;
  bool unsettled_ = false;  // An attempt may have been applied, or may yet be.
};

Result<StoredCursor> change_cursor(const Stream& stream, const std::string& group,
                                   CursorChange change, const CallOptions& call) {
  return CursorWriter(stream, group, std::move(change)).run(call);
}

Status check_writable(const Stream& stream, const std::string& group) {
  BL_RETURN_IF_ERROR(validate_name("group", group));
  const objstore::Capabilities can = stream.objects().capabilities();
  if (can.conditional_create && can.conditional_replace) return Status::ok();
  return Status::invalid(fmt::format(
      "{}: the object store cannot replace an object on condition of its content (If-Match), which "
      "live cursors need; use pins only, or another store (batchloom store probe)",
      live_cursor_key(group)));
}

Status no_cursor(const std::string& group) {
  return Status::not_found(fmt::format("{}: group '{}' has no live cursor; open one first",
                                       live_cursor_key(group), group));
}

// Never below what it was: that would take the handshake. Pins come in the order of their steps;
// those below were put by who came too late, or keep their steps by themselves. One above the
// cursor is of an earlier run, and no checkpoint yet of the ranks that are behind.
Step raised_keep_from(const LiveCursor& before, Step cursor, const std::vector<Pin>& pins) {
  const auto oldest = std::ranges::lower_bound(pins, before.keep_from, {}, &Pin::step);
  return oldest == pins.end() || oldest->step > cursor ? before.keep_from : oldest->step;
}

LiveCursor closed(const LiveCursor& before) {
  LiveCursor after = before;
  after.closed = true;
  ++after.counter;
  return after;
}

// Closes what came too late, unless another process has opened it anew, and says so.
Status refuse(const Stream& stream, const StoredCursor& opened, const Status& refusal,
              const CallOptions& call) {
  const std::string& group = opened.cursor.group;
  const Status gone = change_cursor(
                          stream, group,
                          [&](const StoredCursor* before) -> Result<std::optional<LiveCursor>> {
                            if (before == nullptr) return no_cursor(group);
                            if (before->nonce != opened.nonce) return std::optional<LiveCursor>();
                            return std::optional(closed(before->cursor));
                          },
                          call)
                          .status();
  const std::string key = live_cursor_key(group);
  if (gone.is_ok()) return refusal.with_context("opening " + key);
  return {
      refusal.kind(),
      fmt::format("opening {}: {}; it could not be closed again and keeps nothing ({}): close it",
                  key, refusal.message(), gone.to_string())};
}

}  // namespace

Result<LiveCursor> open_live_cursor(const Stream& stream, const std::string& group, Step step,
                                    const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_writable(stream, group));
  ManifestReader reader(stream);
  // A step that is long gone should not disturb whoever has the cursor now.
  BL_ASSIGN_OR_RETURN(const HeadPtr head, reader.latest(call));
  const Status there = check_not_trimmed(head->head, step);
  if (!there.is_ok()) return there.with_context("opening " + live_cursor_key(group));
  BL_ASSIGN_OR_RETURN(const StoredCursor opened,
                      change_cursor(
                          stream, group,
                          [&](const StoredCursor* before) -> Result<std::optional<LiveCursor>> {
                            return std::optional(LiveCursor{
                                .group = group,
                                .keep_from = step,
                                .cursor = step,
                                .counter = before == nullptr ? 0 : before->cursor.counter + 1,
                                .closed = false});
                          },
                          call));
  const Status kept = confirm_kept(stream, reader, step, call);
  if (kept.is_ok()) return opened.cursor;
  if (kept.is(ErrorKind::kNotFound)) return refuse(stream, opened, kept, call);
  return kept.with_context(
      fmt::format("opening {}: it may have come too late; open it again", live_cursor_key(group)));
}

Result<LiveCursor> report_live_cursor(const Stream& stream, const std::string& group, Step step,
                                      const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_writable(stream, group));
  BL_ASSIGN_OR_RETURN(const std::vector<Pin> pins, list_pins(stream, group, call));
  BL_ASSIGN_OR_RETURN(
      const StoredCursor reported,
      change_cursor(
          stream, group,
          [&](const StoredCursor* before) -> Result<std::optional<LiveCursor>> {
            if (before == nullptr) return no_cursor(group);
            LiveCursor after = before->cursor;
            if (after.closed) {
              return Status::conflict(
                  fmt::format("{}: it was closed; open it again to go on", live_cursor_key(group)));
            }
            after.keep_from = raised_keep_from(before->cursor, step, pins);
            after.cursor = step;
            ++after.counter;
            return std::optional(std::move(after));
          },
          call));
  return reported.cursor;
}

Status close_live_cursor(const Stream& stream, const std::string& group, const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_writable(stream, group));
  return change_cursor(
             stream, group,
             [&](const StoredCursor* before) -> Result<std::optional<LiveCursor>> {
               if (before == nullptr) return no_cursor(group);
               if (before->cursor.closed) return std::optional<LiveCursor>();
               return std::optional(closed(before->cursor));
             },
             call)
      .status();
}

Result<std::vector<LiveCursor>> list_live_cursors(const Stream& stream, const CallOptions& call) {
  std::vector<std::string> groups;
  BL_RETURN_IF_ERROR(for_each_key(stream, kPinPrefix, call, [&](const std::string& key) {
    if (auto group = parse_live_cursor_key(key)) groups.push_back(*std::move(group));
  }));
  std::ranges::sort(groups);
  std::vector<LiveCursor> cursors;
  for (const std::string& group : groups) {
    BL_ASSIGN_OR_RETURN(auto cursor, read_live_cursor(stream, group, call));
    if (!cursor) {
      return missing_object(
          live_cursor_key(group),
          fmt::format("though it was listed and nothing removes a live cursor: what group '{}' "
                      "still needs is unknown; open it again",
                      group));
    }
    cursors.push_back(*std::move(cursor));
  }
  return cursors;
}

Result<std::optional<LiveCursor>> read_live_cursor(const Stream& stream, const std::string& group,
                                                   const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_name("group", group));
  BL_ASSIGN_OR_RETURN(const auto there, read_tagged(stream, group, call));
  if (!there) return std::optional<LiveCursor>();
  return std::optional(there->stored.cursor);
}

}  // namespace batchloom::store
