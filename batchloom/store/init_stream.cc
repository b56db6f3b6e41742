// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "batchloom/store/backoff.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/read_object.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {
namespace {

using objstore::PutCondition;
using objstore::PutOutcome;

constexpr Slot kGenesis{1};

// Creates the object unless it exists, whoever made it.
Status ensure_exists(const StreamDeps& deps, std::string_view key, const Bytes& bytes,
                     const CallOptions& call) {
  const std::string what = fmt::format("initialising {}", key);
  Backoff backoff(deps.runtime);
  for (;;) {
    const auto reply = objstore::put_bytes(deps.objects, key, bytes, PutCondition::absent(), call);
    if (reply.is_ok() && reply->outcome != PutOutcome::kUnknown) return Status::ok();
    if (!reply.is_ok() && !is_transient(reply.status())) return reply.status().with_context(what);
    const Status paused = backoff.wait(call);
    if (!paused.is_ok()) return gave_up(what, paused, cause_of(reply));
  }
}

StreamUuid random_uuid(Runtime& runtime) {
  StreamUuid uuid;
  store_le(runtime.random(), uuid.bytes.data());
  store_le(runtime.random(), uuid.bytes.data() + sizeof(std::uint64_t));
  return uuid;
}

// Genesis comes before the floor: where the floor stands, the init has ended.
Status complete(const StreamDeps& deps, const StreamUuid& uuid, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const bool committed, has_commits(deps.objects, call));
  if (committed) {
    // Another init may have ended, and others may have committed, since the floor was looked for.
    BL_ASSIGN_OR_RETURN(const auto floor, deps.objects.head(kFloorKey, call));
    if (floor) return Status::ok();
    return missing_object(
        kFloorKey,
        "though slots above genesis are there: the stream is damaged; restore it, or take another "
        "place");
  }
  Head genesis;
  genesis.slot = kGenesis;
  genesis.txid = {deps.runtime.random(), 0};
  BL_RETURN_IF_ERROR(
      ensure_exists(deps, manifest_key(kGenesis), encode_head(uuid, genesis).bytes, call));
  return ensure_exists(deps, kFloorKey, encode_floor(uuid, Slot(0)), call);
}

// A FORMAT that is missing beside a floor was lost: another identity would make what is left
// foreign.
Status check_not_lost(const StreamDeps& deps, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto format, deps.objects.head(kFormatKey, call));
  if (format) return Status::ok();
  BL_ASSIGN_OR_RETURN(const auto floor, deps.objects.head(kFloorKey, call));
  if (!floor) return Status::ok();
  // Unless another init has made both in between.
  BL_ASSIGN_OR_RETURN(format, deps.objects.head(kFormatKey, call));
  if (format) return Status::ok();
  return missing_object(
      kFormatKey,
      "though gc/floor is there: the stream is damaged; restore it, or take another place");
}

}  // namespace

Result<InitResult> init_stream(const StreamDeps& deps, std::string_view created_by,
                               const CallOptions& call) {
  if (!deps.objects.capabilities().conditional_create ||
      !deps.objects.capabilities().conditional_replace) {
    return Status::invalid(
        "this object store has no conditional writes, and a stream cannot live without; use one "
        "that "
        "passes `batchloom store probe`");
  }
  BL_RETURN_IF_ERROR(check_not_lost(deps, call));
  const StreamFormat ours{random_uuid(deps.runtime), std::string(created_by)};
  BL_RETURN_IF_ERROR(ensure_exists(deps, kFormatKey, encode_format(ours), call));
  BL_ASSIGN_OR_RETURN(const StreamFormat format, read_format(deps.objects, call));
  BL_ASSIGN_OR_RETURN(const auto floor, deps.objects.head(kFloorKey, call));
  if (!floor) BL_RETURN_IF_ERROR(complete(deps, format.uuid, call));
  return InitResult{format.uuid, !floor.has_value()};
}

}  // namespace batchloom::store
