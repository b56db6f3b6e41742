// SPDX-License-Identifier: Apache-2.0
// Reading what the head does not hold itself: segments, and the entry of any step.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>

#include "batchloom/base/mutex.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

using SegmentPtr = std::shared_ptr<const Segment>;

/// Loads segments and keeps the most recently used ones. Segments are immutable, so the cache never
/// goes stale. Thread-safe; concurrent calls may repeat each other's reads.
class SegmentReader {
 public:
  /// Encoded bytes of the segments kept.
  static constexpr std::size_t kDefaultCacheBytes = std::size_t{16} << 20;

  explicit SegmentReader(const Stream& stream, std::size_t cache_bytes = kDefaultCacheBytes)
      : stream_(stream), cache_bytes_max_(cache_bytes) {}

  /// `corruption` where the segment is missing or damaged.
  Result<SegmentPtr> load(const SegmentRef& ref, const CallOptions& call);

  /// The entry that contains `step`: O(log) segments, from the cache where possible. `not_found`
  /// outside [first_step, next_step) of `head`, naming the bounds. `corruption` also where a newer
  /// head has trimmed the step and its segments were deleted: look at the newest one before
  /// believing it.
  Result<Entry> find(const Head& head, Step step, const CallOptions& call);

  /// Calls `visit` for every segment that `head` needs: it is referred to, directly or through
  /// another one, and does not end at or below first_step. Parents first; segments of level 0 are
  /// not loaded for it. Ends early with an error of `visit` or of a load.
  Status for_each_ref(const Head& head, const CallOptions& call,
                      const std::function<Status(const SegmentRef&)>& visit);

 private:
  struct Cached {
    SegmentRef ref;
    SegmentPtr segment;
  };

  SegmentPtr lookup(const SegmentRef& ref);
  void remember(const SegmentRef& ref, const SegmentPtr& segment);

  const Stream& stream_;
  const std::size_t cache_bytes_max_;
  Mutex mutex_;
  std::size_t cache_bytes_ BL_GUARDED_BY(mutex_) = 0;
  std::list<Cached> recent_ BL_GUARDED_BY(mutex_);  // Most recently used first.
  std::map<std::uint64_t, std::list<Cached>::iterator> by_nonce_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::store
