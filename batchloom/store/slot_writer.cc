// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/slot_writer.h"

#include <fmt/format.h>

#include "batchloom/base/check.h"
#include "batchloom/store/backoff.h"
#include "batchloom/store/floor.h"

namespace batchloom::store {
namespace {

using objstore::PutCondition;
using objstore::PutOutcome;

// One attempt at one slot with one sequence of bytes.
class SlotAttempt {
 public:
  SlotAttempt(const Stream& stream, ManifestReader& reader, Head head)
      : stream_(stream),
        reader_(reader),
        key_(manifest_key(head.slot)),
        encoded_(encode_head(stream.uuid(), head)),
        head_(std::move(head)) {}

  Result<SlotOutcome> run(const CallOptions& call) {
    if (encoded_.bytes.size() > kHeadMaxBytes) {
      return Status::exhausted(
          fmt::format("committing {}: the head would take {} bytes of {}; do all producers use the "
                      "same limits?",
                      key_, encoded_.bytes.size(), kHeadMaxBytes));
    }
    Backoff backoff(stream_.runtime());
    for (;;) {
      const Result<std::optional<SlotOutcome>> outcome = attempt(call);
      if (outcome.is_ok() && *outcome) return **outcome;
      if (!outcome.is_ok() && !is_transient(outcome.status())) return failure(outcome.status());
      const Status paused = backoff.wait(call);
      if (!paused.is_ok()) return failure(paused);
    }
  }

 private:
  // nullopt: not settled, try again.
  Result<std::optional<SlotOutcome>> attempt(const CallOptions& call) {
    const auto reply =
        objstore::put_bytes(stream_.objects(), key_, encoded_.bytes, PutCondition::absent(), call);
    if (reply.is(ErrorKind::kConflict)) return look(call);
    if (!reply.is_ok()) return reply.status();
    switch (reply->outcome) {
      case PutOutcome::kConditionFailed: return taken();
      case PutOutcome::kApplied: unsettled_ = true; return settle_created(call);
      case PutOutcome::kUnknown: break;
    }
    unsettled_ = true;
    stream_.counters().counter("store_commit_unknown").add();
    return look(call);
  }

  Result<std::optional<SlotOutcome>> look(const CallOptions& call) {
    BL_ASSIGN_OR_RETURN(const auto info, stream_.objects().head(key_, call));
    if (!info) return std::optional<SlotOutcome>();
    return taken();
  }

  Result<std::optional<SlotOutcome>> taken() {
    stream_.counters().counter("store_commit_lost_races").add();
    return std::optional(SlotOutcome::kTaken);
  }

  Result<std::optional<SlotOutcome>> settle_created(const CallOptions& call) {
    BL_ASSIGN_OR_RETURN(const Slot floor, read_floor(stream_, call));
    if (head_.slot <= floor && stream_.safeguards().hold(Safeguard::kFloorCheck)) {
      stream_.counters().counter("store_commit_dead_slots").add();
      reader_.forget();
      return std::optional(SlotOutcome::kTaken);
    }
    stream_.counters().counter("store_commits").add();
    reader_.adopt(std::make_shared<const StoredHead>(StoredHead{std::move(head_), encoded_.crc}));
    return std::optional(SlotOutcome::kCommitted);
  }

  Status failure(const Status& error) const {
    if (!unsettled_) return error.with_context(fmt::format("committing {}", key_));
    return Status::unknown_outcome(
        fmt::format("committing {}: it may have been written ({}); do the same again, or open a "
                    "new session, to find out",
                    key_, error.to_string()));
  }

  const Stream& stream_;
  ManifestReader& reader_;
  std::string key_;
  Encoded encoded_;
  Head head_;
  bool unsettled_ = false;  // An attempt may have been applied, or may yet be.
};

}  // namespace

Result<SlotOutcome> write_slot(const Stream& stream, ManifestReader& reader,
                               const StoredHead& previous, Head head, const CallOptions& call) {
  BL_CHECK(head.slot == previous.head.slot + 1, "a slot is committed on the head before it");
  head.previous_crc = previous.crc;
  return SlotAttempt(stream, reader, std::move(head)).run(call);
}

}  // namespace batchloom::store
