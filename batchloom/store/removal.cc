// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/removal.h"

#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::store {
namespace {

// Keys in one removal request; S3 takes at most as many.
constexpr std::size_t kRemoveBatch = 1000;

std::string_view counter_of(RemovalKind kind) {
  switch (kind) {
    case RemovalKind::kSlot: return "store_reclaimed_slots";
    case RemovalKind::kSegment: return "store_reclaimed_segments";
    case RemovalKind::kBatch: return "store_reclaimed_batches";
    case RemovalKind::kState: return "store_reclaimed_states";
    case RemovalKind::kMembership: return "store_reclaimed_memberships";
  }
  return "";
}

}  // namespace

std::string_view to_string(RemovalKind kind) {
  switch (kind) {
    case RemovalKind::kSlot: return "slot";
    case RemovalKind::kSegment: return "segment";
    case RemovalKind::kBatch: return "batch";
    case RemovalKind::kState: return "state";
    case RemovalKind::kMembership: return "membership";
  }
  return "";
}

std::uint64_t& ReclaimReport::removed(RemovalKind kind) {
  switch (kind) {
    case RemovalKind::kSlot: return slots_removed;
    case RemovalKind::kSegment: return segments_removed;
    case RemovalKind::kBatch: return batches_removed;
    case RemovalKind::kState: return states_removed;
    case RemovalKind::kMembership: break;
  }
  return memberships_removed;
}

Status Remover::add(Removal removal, const CallOptions& call) {
  if (options_.dry_run) {
    count(removal);
    return Status::ok();
  }
  pending_.push_back(std::move(removal));
  return pending_.size() < kRemoveBatch ? Status::ok() : flush(call);
}

Status Remover::flush(const CallOptions& call) {
  if (pending_.empty()) return Status::ok();
  const std::vector<Removal> batch = std::exchange(pending_, {});
  std::vector<std::string> keys;
  for (const Removal& removal : batch) keys.push_back(removal.key);
  BL_ASSIGN_OR_RETURN(const auto replies, stream_.objects().remove(keys, call));
  BL_CHECK(replies.size() == batch.size(), "a store answers for each key");
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (replies[i].is_ok()) {
      count(batch[i]);
      stream_.counters().counter(counter_of(batch[i].kind)).add();
    } else if (report_.failed++ == 0) {
      report_.first_failure = replies[i].with_context("removing " + batch[i].key);
    }
  }
  return Status::ok();
}

void Remover::count(const Removal& removal) {
  ++report_.removed(removal.kind);
  if (options_.on_removal) options_.on_removal(removal);
}

}  // namespace batchloom::store
