// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/floor.h"

#include <fmt/format.h>

#include "batchloom/store/backoff.h"
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

Result<TaggedFloor> read_tagged_floor(const Stream& stream, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(
      std::optional<TaggedFloor> floor,
      read_object(stream.objects(), {kFloorKey, kSmallObjectMaxBytes}, call,
                  [&](const ObjectData& data) -> Result<TaggedFloor> {
                    BL_ASSIGN_OR_RETURN(const Slot slot, decode_floor(stream.uuid(), data.bytes));
                    if (!data.etag)
                      return Status::internal(
                          "the object store gave no etag for a whole read of gc/floor");
                    return TaggedFloor{slot, *data.etag};
                  }));
  if (!floor)
    return Status::corruption(
        "gc/floor: missing, and nothing removes it: the stream is damaged; see what is left with "
        "`batchloom store verify`");
  return *std::move(floor);
}

}  // namespace

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
