// SPDX-License-Identifier: Apache-2.0
// Finding the newest manifest head, and trusting it.
//
//  1. Slots above the floor are dense. So the newest one is found by existence alone: gallop from
//     a known slot (the cached head, else the floor) over +1, +2, +4, ... and bisect. Never by
//     listing.
//  2. A slot number at or below the floor may have been deleted, and a stalled writer may then
//     have created it again. So after the last read, found or missing, the floor is read once
//     more; unless the first slot that was looked at is still above it, nothing of what was seen
//     counts, the cache is forgotten, and the search begins at the floor. No clock decides
//     whether to look.
//  3. Consecutive heads are chained by CRC; a break is `corruption` (two writers each believing
//     they own a slot).
#pragma once

#include <memory>
#include <optional>

#include "batchloom/base/mutex.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

using HeadPtr = std::shared_ptr<const StoredHead>;

/// Thread-safe; concurrent calls may repeat each other's reads.
class ManifestReader {
 public:
  explicit ManifestReader(const Stream& stream) : stream_(stream) {}

  /// A head that was the newest at some moment during this call.
  Result<HeadPtr> latest(const CallOptions& call);

  /// The head of exactly this slot; nullopt where it does not exist or is not above the floor.
  Result<std::optional<HeadPtr>> at(Slot slot, const CallOptions& call);

  /// The newest head that this reader has seen and trusts; null before the first and after
  /// forget().
  HeadPtr cached() const;
  /// Takes over a head that its caller just created and floor-checked.
  void adopt(HeadPtr head);
  void forget();

 private:
  // Searches upward from `base`, which is a trusted slot or the floor. nullopt: the floor has
  // passed base.
  Result<std::optional<HeadPtr>> search(Slot base, const HeadPtr& known, const CallOptions& call);
  // The newest existing slot, given that `base` exists.
  Result<Slot> gallop(Slot base, const CallOptions& call);
  Result<bool> exists(Slot slot, const CallOptions& call);
  Result<std::optional<HeadPtr>> get(Slot slot, const CallOptions& call);

  const Stream& stream_;
  mutable Mutex mutex_;
  HeadPtr cached_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::store
