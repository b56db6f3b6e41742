// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/reclaimer.h"

#include <algorithm>
#include <set>
#include <span>

#include "batchloom/store/floor.h"

namespace batchloom::store {
namespace {

// Keys in one removal request; S3 takes at most as many.
constexpr std::size_t kRemoveBatch = 1000;

}  // namespace

Result<ReclaimReport> Reclaimer::run(const CallOptions& call) {
  ReclaimReport report;
  BL_RETURN_IF_ERROR(reclaim_slots(report, call));
  BL_RETURN_IF_ERROR(reclaim_orphans(report, call));
  return report;
}

Status Reclaimer::reclaim_slots(ReclaimReport& report, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const HeadPtr head, reader_.latest(call));
  const std::uint64_t kept = std::max<std::uint64_t>(stream_.limits().slots_kept, 1);
  const Slot target(head->head.slot.value > kept ? head->head.slot.value - kept : 0);
  BL_ASSIGN_OR_RETURN(report.floor, raise_floor(stream_, target, call));
  std::vector<std::string> keys;
  BL_RETURN_IF_ERROR(for_each_key(kManifestPrefix, call, [&](const std::string& key) {
    const std::optional<Slot> slot = parse_manifest_key(key);
    if (slot && *slot <= report.floor) keys.push_back(key);
  }));
  BL_ASSIGN_OR_RETURN(report.slots_removed, remove(keys, report, call));
  stream_.counters().counter("store_reclaimed_slots").add(report.slots_removed);
  return Status::ok();
}

Status Reclaimer::reclaim_orphans(ReclaimReport& report, const CallOptions& call) {
  // The order is the safeguard: whatever the listing shows was there before the head was read.
  const bool list_first = stream_.safeguards().hold(Safeguard::kListBeforeHead);
  HeadPtr head;
  Candidates candidates;
  if (!list_first) {
    BL_ASSIGN_OR_RETURN(head, reader_.latest(call));
  }
  BL_ASSIGN_OR_RETURN(candidates, list_candidates(call));
  if (list_first) {
    BL_ASSIGN_OR_RETURN(head, reader_.latest(call));
  }
  BL_ASSIGN_OR_RETURN(const auto segments, orphaned_segments(head->head, candidates, call));
  BL_ASSIGN_OR_RETURN(report.segments_removed, remove(segments, report, call));
  stream_.counters().counter("store_reclaimed_segments").add(report.segments_removed);
  BL_ASSIGN_OR_RETURN(report.states_removed,
                      remove(orphaned_states(head->head, candidates), report, call));
  stream_.counters().counter("store_reclaimed_states").add(report.states_removed);
  return Status::ok();
}

Status Reclaimer::for_each_key(std::string_view prefix, const CallOptions& call,
                               const std::function<void(const std::string&)>& visit) {
  BL_ASSIGN_OR_RETURN(const auto listing, stream_.objects().list(prefix, "", call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(const std::vector<objstore::ListedObject> page, listing->next_page(call));
    if (page.empty()) return Status::ok();
    for (const objstore::ListedObject& object : page) visit(object.key);
  }
}

Result<Reclaimer::Candidates> Reclaimer::list_candidates(const CallOptions& call) {
  Candidates candidates;
  BL_RETURN_IF_ERROR(for_each_key(kSegmentPrefix, call, [&](const std::string& key) {
    if (const auto name = parse_segment_key(key)) candidates.segments.push_back(*name);
  }));
  BL_RETURN_IF_ERROR(for_each_key(kDataPrefix, call, [&](const std::string& key) {
    auto name = parse_data_key(key);
    if (name && name->kind == DataKind::kState) candidates.states.push_back(*std::move(name));
  }));
  return candidates;
}

Result<std::vector<std::string>> Reclaimer::orphaned_segments(const Head& head,
                                                              const Candidates& candidates,
                                                              const CallOptions& call) {
  std::set<std::string> orphans;
  for (const SegmentName& name : candidates.segments) {
    if (name.slot > head.slot && stream_.safeguards().hold(Safeguard::kSegmentProof)) continue;
    orphans.insert(segment_key(name));
  }
  if (orphans.empty()) return std::vector<std::string>();
  BL_RETURN_IF_ERROR(segments_.for_each_ref(head, call, [&](const SegmentRef& ref) {
    orphans.erase(segment_key(ref.name()));
    return Status::ok();
  }));
  return std::vector<std::string>(orphans.begin(), orphans.end());
}

std::vector<std::string> Reclaimer::orphaned_states(const Head& head,
                                                    const Candidates& candidates) const {
  std::vector<std::string> orphans;
  for (const DataName& name : candidates.states) {
    const ProducerRow* row = head.find_producer(name.producer);
    const bool settled = row == nullptr || name.term < row->term ||
                         (name.term == row->term && name.seq < row->next_seq);
    if (!settled) continue;
    const bool named = row != nullptr && row->state.ref && row->state_object() == name;
    if (named && stream_.safeguards().hold(Safeguard::kStateRef)) continue;
    orphans.push_back(data_key(name));
  }
  return orphans;
}

Result<std::uint64_t> Reclaimer::remove(const std::vector<std::string>& keys, ReclaimReport& report,
                                        const CallOptions& call) {
  std::uint64_t removed = 0;
  for (std::size_t begin = 0; begin < keys.size(); begin += kRemoveBatch) {
    const auto batch = std::span(keys).subspan(begin, std::min(keys.size() - begin, kRemoveBatch));
    BL_ASSIGN_OR_RETURN(const auto replies, stream_.objects().remove(batch, call));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].outcome == objstore::RemoveOutcome::kRemoved) {
        ++removed;
      } else if (report.failed++ == 0) {
        report.first_failure = batch[i] + ": " + replies[i].detail;
      }
    }
  }
  return removed;
}

}  // namespace batchloom::store
