// SPDX-License-Identifier: Apache-2.0
// Which of the listed objects nobody needs, nor ever will. The proofs stand in reclaimer.h.
#pragma once

#include <functional>

#include "batchloom/store/removal.h"
#include "batchloom/store/segment_reader.h"
#include "batchloom/store/stream_inventory.h"

namespace batchloom::store {

/// One search, by one head that was read after the listing. One thread at a time.
class OrphanSearch {
 public:
  /// `now` is that head; `after` is the one that decides: the same, or in a dry run what a trim
  /// would leave of it. All of them outlive it.
  OrphanSearch(const Stream& stream, StreamInventory& inventory, const Head& now, const Head& after)
      : stream_(stream), inventory_(inventory), now_(now), after_(after) {}

  /// Claims in the inventory what is needed. Reads all segments above level 0, and all that hold
  /// needed entries unless no batch object that is listed can be an orphan. `corruption` where one
  /// is missing or damaged: perhaps because another has trimmed since `now` was read.
  Status claim_needed(SegmentReader& segments, const CallOptions& call);

  /// Calls `visit` for every orphan among what was not claimed: segments, and data of each kind.
  /// Ends early with an error of it.
  Status for_each_orphan(const std::function<Status(Removal)>& visit) const;

 private:
  bool any_batch_settled() const;
  bool is_needed(const Entry& entry) const;
  std::optional<Removal> judge(const SegmentName& name) const;
  std::optional<Removal> judge_batch(const DataName& name, bool trimmed) const;
  std::optional<Removal> judge_small(const DataName& name) const;

  const Stream& stream_;
  StreamInventory& inventory_;
  const Head& now_;
  const Head& after_;
};

}  // namespace batchloom::store
