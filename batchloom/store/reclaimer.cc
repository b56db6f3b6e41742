// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/reclaimer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "batchloom/store/floor.h"
#include "batchloom/store/list_keys.h"
#include "batchloom/store/orphans.h"
#include "batchloom/store/trimmer.h"

namespace batchloom::store {
namespace {

std::string summary_of(const ReclaimReport& report) {
  return fmt::format(
      "after {} slots, {} segments, {} batch objects, {} states and {} memberships were removed",
      report.slots_removed, report.segments_removed, report.batches_removed, report.states_removed,
      report.memberships_removed);
}

}  // namespace

Result<ReclaimReport> Reclaimer::run(const ReclaimOptions& options, const CallOptions& call) {
  ReclaimReport report;
  Pass pass{.options = options, .report = report, .call = call};
  Status done = run_pass(pass);
  if (done.is(ErrorKind::kExhausted)) {
    BL_RETURN_IF_ERROR(make_room(pass, done));
    done = run_pass(pass);
  }
  if (done.is_ok()) return report;
  return report.removed() == 0 ? done : done.with_context(summary_of(report));
}

Status Reclaimer::run_pass(Pass& pass) {
  if (pass.options.trim) BL_RETURN_IF_ERROR(trim_steps(pass));
  BL_RETURN_IF_ERROR(remove_slots(pass));
  return remove_orphans(pass);
}

Status Reclaimer::make_room(const Pass& pass, const Status& full) {
  Pass removals = pass;
  removals.writes = false;
  for (const Status& done : {remove_slots(removals), remove_orphans(removals)}) {
    if (!done.is_ok()) return full.with_context(done.to_string());
  }
  if (pass.report.removed() > 0) return Status::ok();
  return full.with_context("nothing can be removed before the store takes a commit again");
}

Status Reclaimer::reclaim_slots(ReclaimReport& report, const CallOptions& call) {
  const ReclaimOptions options;
  return remove_slots({.options = options, .report = report, .call = call});
}

Status Reclaimer::trim_steps(Pass& pass) {
  if (!pass.options.dry_run) {
    BL_ASSIGN_OR_RETURN(const TrimReport trimmed, trim(stream_, reader_, pass.call));
    pass.report.steps_trimmed = trimmed.steps;
    return Status::ok();
  }
  BL_ASSIGN_OR_RETURN(const HeadPtr head, reader_.latest(pass.call));
  BL_ASSIGN_OR_RETURN(pass.kept, lowest_kept_step(stream_, head->head.first_step, pass.call));
  const Head after = preview_trim(head->head, pass.kept, stream_.safeguards());
  pass.report.steps_trimmed = after.first_step - head->head.first_step;
  return Status::ok();
}

Status Reclaimer::remove_slots(const Pass& pass) {
  BL_ASSIGN_OR_RETURN(const Heads heads, read_heads(pass));
  BL_ASSIGN_OR_RETURN(const Slot floor, move_floor(pass, heads.after->head.slot));
  pass.report.floor = floor;
  std::vector<Slot> dead;
  BL_RETURN_IF_ERROR(for_each_key(stream_, kManifestPrefix, pass.call, [&](const std::string& key) {
    const std::optional<Slot> slot = parse_manifest_key(key);
    if (slot && *slot <= floor) dead.push_back(*slot);
  }));
  Remover remover(stream_, pass.options, pass.report);
  for (const Slot slot : dead) {
    BL_RETURN_IF_ERROR(remover.add({.kind = RemovalKind::kSlot,
                                    .key = manifest_key(slot),
                                    .reason = fmt::format("not above the floor {}", floor.value)},
                                   pass.call));
  }
  return remover.flush(pass.call);
}

Status Reclaimer::remove_orphans(const Pass& pass) {
  for (;;) {
    BL_ASSIGN_OR_RETURN(Listing listed, list_objects(pass));
    const Head& now = listed.heads.now->head;
    const Head& after = listed.heads.after->head;
    pass.report.first_step = after.first_step;
    OrphanSearch search(stream_, listed.inventory, now, after);
    const Status claimed = search.claim_needed(segments_, pass.call);
    if (claimed.is(ErrorKind::kCorruption)) {
      // Another may have trimmed meanwhile, and removed segments that this head still needed.
      BL_ASSIGN_OR_RETURN(const HeadPtr newest, reader_.latest(pass.call));
      if (newest->head.first_step > now.first_step) continue;
    }
    BL_RETURN_IF_ERROR(claimed);
    Remover remover(stream_, pass.options, pass.report);
    BL_RETURN_IF_ERROR(search.for_each_orphan(
        [&](Removal removal) { return remover.add(std::move(removal), pass.call); }));
    return remover.flush(pass.call);
  }
}

Result<Reclaimer::Listing> Reclaimer::list_objects(const Pass& pass) {
  constexpr std::string_view kPrefixes[] = {kSegmentPrefix, kDataPrefix};
  // The order is the safeguard: whatever the listing shows was there before the head was read.
  const bool list_first = stream_.safeguards().hold(Safeguard::kListBeforeHead);
  Listing listed;
  if (!list_first) {
    BL_ASSIGN_OR_RETURN(listed.heads, read_heads(pass));
  }
  BL_ASSIGN_OR_RETURN(listed.inventory, StreamInventory::list(stream_, kPrefixes, pass.call));
  if (list_first) {
    BL_ASSIGN_OR_RETURN(listed.heads, read_heads(pass));
  }
  return listed;
}

Result<Reclaimer::Heads> Reclaimer::read_heads(const Pass& pass) {
  BL_ASSIGN_OR_RETURN(const HeadPtr now, reader_.latest(pass.call));
  if (!pass.kept) return Heads{.now = now, .after = now};
  return Heads{.now = now,
               .after = std::make_shared<const StoredHead>(
                   StoredHead{.head = preview_trim(now->head, pass.kept, stream_.safeguards())})};
}

/// The floor as this pass raises it; in a dry run as it would.
Result<Slot> Reclaimer::move_floor(const Pass& pass, Slot newest) {
  const std::uint64_t kept = std::max<std::uint64_t>(stream_.limits().slots_kept, 1);
  const Slot target(newest.value > kept ? newest.value - kept : 0);
  if (!pass.options.dry_run && pass.writes) return raise_floor(stream_, target, pass.call);
  BL_ASSIGN_OR_RETURN(const Slot floor, read_floor(stream_, pass.call));
  return pass.writes ? std::max(floor, target) : floor;
}

}  // namespace batchloom::store
