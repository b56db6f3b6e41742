// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/floor.h"

#include <fmt/format.h>

#include "batchloom/store/backoff.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {
namespace {

using objstore::ObjectData;
using objstore::PutCondition;
using objstore::PutOutcome;

struct TaggedFloor {
  Slot slot;
  objstore::Etag etag;
};

Result<std::optional<TaggedFloor>> find_floor(const Stream& stream, const CallOptions& call) {
  return read_object(
      stream.objects(), {kFloorKey, kSmallObjectMaxBytes}, call,
      [&](const ObjectData& data) -> Result<TaggedFloor> {
        BL_ASSIGN_OR_RETURN(const Slot slot, decode_floor(stream.uuid(), data.bytes));
        if (data.etag) return TaggedFloor{slot, *data.etag};
        return Status::internal("the object store gave no etag for a whole read of gc/floor");
      });
}

Status lost() {
  return missing_object(kFloorKey,
                        "and nothing removes it: the stream is damaged; see what is left with "
                        "`batchloom store verify`");
}

Result<TaggedFloor> read_tagged_floor(const Stream& stream, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(std::optional<TaggedFloor> floor, find_floor(stream, call));
  if (!floor) return lost();
  return *std::move(floor);
}

}  // namespace

Status check_floor(const Stream& stream, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto floor, find_floor(stream, call));
  if (floor) return Status::ok();
  BL_ASSIGN_OR_RETURN(const bool committed, has_commits(stream.objects(), call));
  // Or an init has ended, and somebody has committed, since the floor was looked for.
  BL_ASSIGN_OR_RETURN(floor, find_floor(stream, call));
  if (floor) return Status::ok();
  if (committed) return lost();
  return Status::not_found(
      "gc/floor: missing beside FORMAT: an init is under way or was interrupted; `batchloom store "
      "init` ends it");
}

Result<bool> has_commits(objstore::ObjectStore& objects, const CallOptions& call) {
  constexpr Slot kGenesis{1};
  BL_ASSIGN_OR_RETURN(const auto listing, objects.list(kManifestPrefix, "", call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(const auto page, listing->next_page(call));
    if (page.empty()) return false;
    for (const objstore::ListedObject& object : page) {
      if (object.key != manifest_key(kGenesis)) return true;
    }
  }
}

Result<Slot> read_floor(const Stream& stream, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const TaggedFloor floor, read_tagged_floor(stream, call));
  return floor.slot;
}

Result<Slot> raise_floor(const Stream& stream, Slot target, const CallOptions& call) {
  Backoff backoff(stream.runtime());
  for (;;) {
    BL_ASSIGN_OR_RETURN(const TaggedFloor floor, read_tagged_floor(stream, call));
    if (floor.slot >= target) return floor.slot;
    const std::string what =
        fmt::format("raising gc/floor from {} to {}", floor.slot.value, target.value);
    const Bytes bytes = encode_floor(stream.uuid(), target);
    const auto reply = objstore::put_bytes(stream.objects(), kFloorKey, bytes,
                                           PutCondition::matches(floor.etag), call);
    if (reply.is_ok() && reply->outcome == PutOutcome::kApplied) return target;
    if (!reply.is_ok() && !is_transient(reply.status())) return reply.status().with_context(what);
    const Status paused = backoff.wait(call);
    if (!paused.is_ok()) return gave_up(what, paused, cause_of(reply));
  }
}

}  // namespace batchloom::store
