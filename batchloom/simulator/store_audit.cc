// SPDX-License-Identifier: Apache-2.0
// The last look at a StoreWorld, when all is quiet: a clean-up must leave what is needed and
// nothing else, and all of that must be read.
#include <fmt/format.h>

#include <algorithm>

#include "batchloom/simulator/store_world_state.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/verify.h"

namespace batchloom::simulator {
namespace {

using store::Pin;
using store::Step;

class Auditor {
 public:
  Auditor(StoreWorld& world, const store::Stream& stream, bool all_trained)
      : world_(world), stream_(stream), all_trained_(all_trained) {}

  Status run() {
    BL_RETURN_IF_ERROR(settle_pins());
    store::Reclaimer reclaimer(stream_);
    BL_ASSIGN_OR_RETURN(const auto report, reclaimer.run({}));
    static_cast<void>(report);
    return read_everything();
  }

  /// What `batchloom store verify` would say.
  Status verify() {
    BL_ASSIGN_OR_RETURN(const store::VerifyReport report,
                        store::verify_stream(stream_, store::VerifyDepth::kRecords, {}));
    if (report.problems.empty()) return Status::ok();
    return Status::corruption("`store verify` finds " + report.problems.front());
  }

 private:
  /// Leaves one pin for each group: its newest checkpoint's, or one behind all steps.
  Status settle_pins() {
    std::vector<Pin> kept;
    for (const Trainer& trainer : world_.trainers()) {
      if (!all_trained_) {
        kept.push_back(trainer.usable_checkpoints().back());
        continue;
      }
      const Step end = world_.history().head().next_step;
      BL_ASSIGN_OR_RETURN(
          const Pin pin,
          store::pin_step(stream_, {.group = trainer.group(), .id = "end", .step = end}, {}));
      world_.judge().pin_told(pin);
      kept.push_back(pin);
    }
    BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(stream_, {}));
    for (const Pin& pin : pins) {
      if (std::ranges::count(kept, pin) > 0) continue;
      BL_RETURN_IF_ERROR(store::unpin(stream_, pin.name.group, pin.name.id, {}).status());
    }
    return Status::ok();
  }

  Status read_everything() {
    store::ManifestReader reader(stream_);
    store::SegmentReader segments(stream_);
    BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest({}));
    world_.judge().head_read(*head, world_.history().newest(), {});
    for (Step step = head->head.first_step; step < head->head.next_step; ++step) {
      BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head->head, step, {}));
      world_.judge().entry_read(step, entry);
    }
    return Status::ok();
  }

  StoreWorld& world_;
  const store::Stream& stream_;
  const bool all_trained_;
};

}  // namespace

void StoreWorld::audit() {
  if (!finishing()) violations_.add("L6", "not every producer and consumer came to its end");
  heal();
  const Connection& connection = connect("auditor");
  const bool all_trained = world_.random().chance(500);
  const bool verified = world_.random().chance(100);
  Status outcome;
  connection.process->start("main", [&, all_trained, verified] {
    outcome = [&]() -> Status {
      BL_ASSIGN_OR_RETURN(const auto stream, open_stream(connection));
      Auditor auditor(*this, *stream, all_trained);
      BL_RETURN_IF_ERROR(auditor.run());
      return verified ? auditor.verify() : Status::ok();
    }();
  });
  const Status ended = world_.run();
  if (!ended.is_ok()) violations_.add("L1", ended.to_string());
  if (!outcome.is_ok())
    violations_.add("I10", fmt::format("the audit ended with {}", outcome.to_string()));
  audit_leftovers();
}

void StoreWorld::audit_leftovers() {
  const store::Head& head = history_.head();
  if (history_.floor().value + scenario_.limits.slots_kept < head.slot.value) {
    violations_.add("L3", fmt::format("the floor is still {} below head {}", history_.floor().value,
                                      head.slot.value));
  }
  const auto kept = history_.pins().lowest_kept(head.first_step);
  if (kept && head.first_step < std::min(*kept, head.next_step)) {
    violations_.add("L4", fmt::format("the stream still begins at {}, though nobody needs a step "
                                      "below {}",
                                      head.first_step.value, kept->value));
  }
  if (history_.pins().pins() != trainers_.size()) {
    violations_.add("L4", fmt::format("{} pins are left of {} trainers", history_.pins().pins(),
                                      trainers_.size()));
  }
  const objstore::MemoryObjects::PageQuery everything{
      .prefix = "", .start_after = "", .last_shown = "", .limit = SIZE_MAX};
  for (const objstore::ListedObject& object : store_.objects().keys_with_prefix(everything)) {
    audit_object(object.key);
  }
}

void StoreWorld::audit_object(const std::string& key) {
  bool expected = history_.is_needed(key) || history_.may_be_named(key);
  if (const auto slot = store::parse_manifest_key(key)) expected = *slot > history_.floor();
  if (expected || key.starts_with(store::kPinPrefix)) return;
  violations_.add("L3", fmt::format("{} is still there after a clean-up", key));
}

}  // namespace batchloom::simulator
