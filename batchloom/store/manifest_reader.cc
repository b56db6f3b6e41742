// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/manifest_reader.h"

#include <fmt/format.h>

#include "batchloom/store/damage.h"
#include "batchloom/store/floor.h"
#include "batchloom/store/read_object.h"

namespace batchloom::store {
namespace {

Status check_chain(const StoredHead& known, const StoredHead& next) {
  if (next.head.slot != known.head.slot + 1 || next.head.previous_crc == known.crc)
    return Status::ok();
  return corrupt_at(
      manifest_key(next.head.slot), 0,
      fmt::format("continues a head with CRC {:08x}, but {} has {:08x}: the manifest has forked; "
                  "does the object store honour conditions? (batchloom store probe)",
                  next.head.previous_crc, manifest_key(known.head.slot), known.crc));
}

}  // namespace

Result<HeadPtr> ManifestReader::latest(const CallOptions& call) {
  for (;;) {
    BL_RETURN_IF_ERROR(stream_.runtime().check(call));
    const HeadPtr known = cached();
    Slot base;
    if (known) {
      base = known->head.slot;
    } else {
      BL_ASSIGN_OR_RETURN(base, read_floor(stream_, call));
    }
    BL_ASSIGN_OR_RETURN(const std::optional<HeadPtr> found, search(base, known, call));
    if (found) {
      adopt(*found);
      return *found;
    }
    stream_.counters().counter("store_manifest_rediscoveries").add();
    forget();
  }
}

Result<std::optional<HeadPtr>> ManifestReader::at(Slot slot, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const std::optional<HeadPtr> head, get(slot, call));
  BL_ASSIGN_OR_RETURN(const Slot floor, read_floor(stream_, call));
  if (slot <= floor) return std::optional<HeadPtr>();
  return head;
}

HeadPtr ManifestReader::cached() const {
  const MutexLock lock(mutex_);
  return cached_;
}

void ManifestReader::adopt(HeadPtr head) {
  const MutexLock lock(mutex_);
  if (!cached_ || cached_->head.slot < head->head.slot) cached_ = std::move(head);
}

void ManifestReader::forget() {
  const MutexLock lock(mutex_);
  cached_ = nullptr;
}

Result<std::optional<HeadPtr>> ManifestReader::search(Slot base, const HeadPtr& known,
                                                      const CallOptions& call) {
  Slot slot = base + 1;
  BL_ASSIGN_OR_RETURN(std::optional<HeadPtr> newest, get(slot, call));
  const bool grown = newest.has_value();
  if (grown) {
    BL_ASSIGN_OR_RETURN(slot, gallop(slot, call));
    if (slot != base + 1) {
      BL_ASSIGN_OR_RETURN(newest, get(slot, call));
    }
  }
  BL_ASSIGN_OR_RETURN(const Slot floor, read_floor(stream_, call));
  if (base + 1 <= floor) return std::optional<HeadPtr>();
  if (!grown && known) return std::optional<HeadPtr>(known);
  if (!newest) {
    return missing_object(manifest_key(slot),
                          fmt::format("although slots above the floor {} are dense", floor.value));
  }
  if (known) BL_RETURN_IF_ERROR(check_chain(*known, **newest));
  return newest;
}

Result<Slot> ManifestReader::gallop(Slot base, const CallOptions& call) {
  Slot found = base;
  std::uint64_t stride = 1;
  for (;; stride *= 2) {
    BL_ASSIGN_OR_RETURN(const bool there, exists(base + stride, call));
    if (!there) break;
    found = base + stride;
  }
  Slot missing = base + stride;
  while (missing - found > 1) {
    const Slot middle = found + (missing - found) / 2;
    BL_ASSIGN_OR_RETURN(const bool there, exists(middle, call));
    (there ? found : missing) = middle;
  }
  return found;
}

Result<bool> ManifestReader::exists(Slot slot, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto info, stream_.objects().head(manifest_key(slot), call));
  return info.has_value();
}

Result<std::optional<HeadPtr>> ManifestReader::get(Slot slot, const CallOptions& call) {
  const std::string key = manifest_key(slot);
  return read_object(stream_.objects(), {key, kHeadMaxBytes}, call,
                     [&](const objstore::ObjectData& data) -> Result<HeadPtr> {
                       BL_ASSIGN_OR_RETURN(StoredHead head,
                                           decode_head(stream_.uuid(), slot, data.bytes));
                       return std::make_shared<const StoredHead>(std::move(head));
                     });
}

}  // namespace batchloom::store
