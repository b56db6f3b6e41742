// SPDX-License-Identifier: Apache-2.0
// Deleting what nobody needs. Any number of reclaimers may run, anywhere, and stop anywhere.
//
// Every deletion rests on facts that cannot become false again:
//
//  Slots
//    1. Raise the floor to the newest slot less the number of slots kept.
//    2. Delete the slots at or below the floor; also those that a stalled writer created again.
//
//  Orphans
//    1. List the objects.
//    2. Then read the newest head, so that nothing listed can have been published unseen.
//    3. A segment is an orphan if that head does not refer to it, directly or through another
//       segment, and is not below the slot that the segment was written for: that slot is decided.
//    4. A state object is an orphan if no producer row names it, and its producer has no row, or
//       its term is below the row's, or its sequence number is below the row's next one: no commit
//       can name it any more.
//
// Batch objects are not reclaimed here yet.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"

namespace batchloom::store {

struct ReclaimReport {
  Slot floor;
  std::uint64_t slots_removed = 0;
  std::uint64_t segments_removed = 0;
  std::uint64_t states_removed = 0;
  std::uint64_t failed = 0;   ///< Removals that failed; the next pass tries again.
  std::string first_failure;  ///< Key and reason of the first of them.
};

/// One thread at a time.
class Reclaimer {
 public:
  explicit Reclaimer(const Stream& stream) : stream_(stream), reader_(stream), segments_(stream) {}

  /// One whole pass: slots, then orphans. On an error, what was removed stays removed.
  Result<ReclaimReport> run(const CallOptions& call);

  /// The floor and the slots only.
  Status reclaim_slots(ReclaimReport& report, const CallOptions& call);
  /// Segments and state objects only.
  Status reclaim_orphans(ReclaimReport& report, const CallOptions& call);

 private:
  struct Candidates {
    std::vector<SegmentName> segments;
    std::vector<DataName> states;
  };

  Status for_each_key(std::string_view prefix, const CallOptions& call,
                      const std::function<void(const std::string&)>& visit);
  Result<Candidates> list_candidates(const CallOptions& call);
  Result<std::vector<std::string>> orphaned_segments(const Head& head, const Candidates& candidates,
                                                     const CallOptions& call);
  std::vector<std::string> orphaned_states(const Head& head, const Candidates& candidates) const;
  /// Removes the keys, in batches. Returns how many are surely gone (another reclaimer may have
  /// been first); failures go into the report.
  Result<std::uint64_t> remove(const std::vector<std::string>& keys, ReclaimReport& report,
                               const CallOptions& call);

  const Stream& stream_;
  ManifestReader reader_;
  SegmentReader segments_;
};

}  // namespace batchloom::store
