// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/trimmer.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/backoff.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

bool is_trimmable(const Head& head, Step kept) {
  return std::min(kept, head.next_step) > head.first_step;
}

bool announces(const Head& head, Step kept) {
  return head.trim_intent && head.trim_intent->step == kept;
}

/// What stopped a listing of pins, with what it means for a person.
Status blocked(const Status& error) {
  if (!error.is(ErrorKind::kCorruption)) return error;
  return {error.kind(),
          fmt::format("{}; nothing is trimmed while it stands there: remove that object if no "
                      "checkpoint or group needs it any more",
                      error.message())};
}

// One trim under way: as many rounds of (a) to (d) as it takes.
class Trim {
 public:
  Trim(const Stream& stream, ManifestReader& reader, const CallOptions& call)
      : stream_(stream), reader_(reader), call_(call) {}

  Result<TrimReport> run() {
    Backoff backoff(stream_.runtime());
    for (;;) {
      BL_ASSIGN_OR_RETURN(const bool done, attempt());
      if (done) return report_;
      ++report_.withdrawn;
      stream_.counters().counter("store_trim_intents_lost").add();
      const Status paused = backoff.wait(call_);
      if (!paused.is_ok()) return paused.with_context("trimming again after a lost intent");
    }
  }

 private:
  /// False where the intent was lost.
  Result<bool> attempt() {
    BL_ASSIGN_OR_RETURN(const HeadPtr head, reader_.latest(call_));
    report_.first_step = head->head.first_step;
    const Step first_step = report_.first_step;
    BL_ASSIGN_OR_RETURN(const auto kept, lowest_kept_step(stream_, first_step, call_));
    if (!kept || !is_trimmable(head->head, *kept)) return true;
    BL_ASSIGN_OR_RETURN(const auto intent, announce(*kept));
    if (!intent) return true;
    BL_ASSIGN_OR_RETURN(const Step target, confirm(*kept, first_step));
    return complete(*intent, target);
  }

  /// (b). nullopt where another has trimmed as far meanwhile.
  Result<std::optional<TrimIntent>> announce(Step kept) {
    const HeadEdit edit = [kept](const Head& head) -> Result<std::optional<Head>> {
      if (!is_trimmable(head, kept) || announces(head, kept)) return std::optional<Head>();
      return std::optional(propose_trim_intent(head, kept));
    };
    BL_ASSIGN_OR_RETURN(const EditReceipt receipt, commit_edit(stream_, reader_, edit, call_));
    const Head& head = receipt.head->head;
    report_.first_step = head.first_step;
    return is_trimmable(head, kept) ? head.trim_intent : std::nullopt;
  }

  /// (c).
  Result<Step> confirm(Step kept, Step first_step) {
    if (!stream_.safeguards().hold(Safeguard::kSecondPinListing)) return kept;
    BL_ASSIGN_OR_RETURN(const auto now, lowest_kept_step(stream_, first_step, call_));
    return now ? std::min(kept, *now) : kept;
  }

  /// (d). False where the intent was lost.
  Result<bool> complete(const TrimIntent& intent, Step target) {
    bool lost = false;
    Step before;
    const HeadEdit edit = [&](const Head& head) -> Result<std::optional<Head>> {
      before = head.first_step;
      lost = head.trim_intent != intent && is_trimmable(head, target) &&
             stream_.safeguards().hold(Safeguard::kIntentOwner);
      if (lost || (head.trim_intent != intent && !is_trimmable(head, target))) {
        return std::optional<Head>();
      }
      return std::optional(complete_trim(head, target, stream_.safeguards()));
    };
    BL_ASSIGN_OR_RETURN(const EditReceipt receipt, commit_edit(stream_, reader_, edit, call_));
    report_.first_step = receipt.head->head.first_step;
    if (receipt.committed && report_.first_step > before) {
      report_.steps += report_.first_step - before;
      stream_.counters().counter("store_trims").add();
    }
    return !lost;
  }

  const Stream& stream_;
  ManifestReader& reader_;
  const CallOptions& call_;
  TrimReport report_;
};

}  // namespace

Result<std::optional<Step>> lowest_kept_step(const Stream& stream, Step first_step,
                                             const CallOptions& call) {
  const auto pins = list_pins(stream, call);
  if (!pins.is_ok()) return blocked(pins.status());
  const auto cursors = list_live_cursors(stream, call);
  if (!cursors.is_ok()) return blocked(cursors.status());
  std::optional<Step> lowest;
  const auto keep = [&](Step step) {
    if (step >= first_step) lowest = std::min(lowest.value_or(step), step);
  };
  for (const Pin& pin : *pins) keep(pin.step);
  for (const LiveCursor& cursor : *cursors) {
    if (!cursor.closed) keep(cursor.keep_from);
  }
  return lowest;
}

Result<TrimReport> trim(const Stream& stream, ManifestReader& reader, const CallOptions& call) {
  return Trim(stream, reader, call).run();
}

Head preview_trim(const Head& head, std::optional<Step> kept, const Safeguards& safeguards) {
  if (!kept || !is_trimmable(head, *kept)) return head;
  return complete_trim(announces(head, *kept) ? head : propose_trim_intent(head, *kept), *kept,
                       safeguards);
}

}  // namespace batchloom::store
