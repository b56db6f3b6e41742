// SPDX-License-Identifier: Apache-2.0
// Deleting what nobody needs. Any number of reclaimers may run, anywhere, and stop anywhere.
//
// Every deletion rests on facts that cannot become false again:
//
//  Steps
//    Trim what neither pins nor live cursors keep (trimmer.h). That commits, and deletes nothing.
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
//    4. A batch object whose entry lies below first_step as a whole is trimmed. A pack lives until
//       its last step is.
//    5. A batch object that no entry names, or a state or membership object that no row names, is
//       an orphan if its producer has no row, or its term is below the row's, or its sequence
//       number is below the row's next one: no commit can name it any more. All others may be in
//       flight.
//
// A full store refuses the commits of a trim, and with them what would make room. Then a pass first
// removes what needs none: dead slots below the floor as it is, and orphans; and begins again.
//
// A dry run reads the same, decides by the head that its trim would have left, and writes nothing.
// If nobody else does anything, the next pass then removes just what it has named, and the slot of
// its own trim's intent where fewer than two slots are kept.
//
// Memory grows by some 60 bytes for each object below s/ and d/ (stream_inventory.h); keys are
// built for one removal request at a time.
#pragma once

#include <optional>

#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/removal.h"
#include "batchloom/store/segment_reader.h"
#include "batchloom/store/stream_inventory.h"

namespace batchloom::store {

/// One thread at a time.
class Reclaimer {
 public:
  explicit Reclaimer(const Stream& stream) : stream_(stream), reader_(stream), segments_(stream) {}

  /// One whole pass: steps, slots, then orphans. On an error, what was removed stays removed, and
  /// the message counts it. `exhausted` where the store is full and nothing can be removed.
  /// `corruption` before anything is removed where a pin or live cursor is damaged; without `trim`
  /// they are not looked at.
  Result<ReclaimReport> run(const ReclaimOptions& options, const CallOptions& call);
  Result<ReclaimReport> run(const CallOptions& call) { return run(ReclaimOptions(), call); }

  /// The floor and the slots only.
  Status reclaim_slots(ReclaimReport& report, const CallOptions& call);

 private:
  struct Pass {
    const ReclaimOptions& options;
    ReclaimReport& report;
    const CallOptions& call;
    /// What stops the trim of a dry run; nullopt where it does not trim.
    std::optional<Step> kept = {};
    bool writes = true;
  };
  /// The newest head, and the one that decides: what the trim of a dry run would leave of it, else
  /// the same.
  struct Heads {
    HeadPtr now;
    HeadPtr after;
  };

  struct Listing {
    StreamInventory inventory;
    Heads heads;
  };

  Status run_pass(Pass& pass);
  /// Removes what may go without writing anything. `full` where that is nothing.
  Status make_room(const Pass& pass, const Status& full);
  Status trim_steps(Pass& pass);
  Status remove_slots(const Pass& pass);
  Status remove_orphans(const Pass& pass);
  Result<Listing> list_objects(const Pass& pass);
  Result<Heads> read_heads(const Pass& pass);
  Result<Slot> move_floor(const Pass& pass, Slot newest);

  const Stream& stream_;
  ManifestReader reader_;
  SegmentReader segments_;
};

}  // namespace batchloom::store
