// SPDX-License-Identifier: Apache-2.0
// The last look at a StoreWorld, when all is quiet: a clean-up must leave nothing behind, and
// everything must be read.
#include <fmt/format.h>

#include "batchloom/simulator/store_world_state.h"
#include "batchloom/store/reclaimer.h"

namespace batchloom::simulator {
namespace {

Status read_everything(StoreWorld& world, const store::Stream& stream) {
  store::ManifestReader reader(stream);
  store::SegmentReader segments(stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest({}));
  world.judge().head_read(*head, world.history().newest(), {});
  for (store::Step step; step < head->head.next_step; ++step) {
    BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head->head, step, {}));
    world.judge().entry_read(step, entry);
  }
  return Status::ok();
}

}  // namespace

void StoreWorld::audit() {
  heal();
  const Connection& auditor = connect("auditor");
  Status outcome;
  auditor.process->start("main", [&] {
    outcome = [&]() -> Status {
      BL_ASSIGN_OR_RETURN(const auto stream, open_stream(auditor));
      store::Reclaimer reclaimer(*stream);
      BL_ASSIGN_OR_RETURN(const auto report, reclaimer.run({}));
      static_cast<void>(report);
      return read_everything(*this, *stream);
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
  const auto leftover = [this](const std::string& key) {
    violations_.add("L3", fmt::format("{} is still there after a clean-up", key));
  };
  const objstore::MemoryObjects::PageQuery everything{
      .prefix = "", .start_after = "", .last_shown = "", .limit = SIZE_MAX};
  for (const objstore::ListedObject& object : store_.objects().keys_with_prefix(everything)) {
    if (const auto slot = store::parse_manifest_key(object.key)) {
      if (*slot <= history_.floor()) leftover(object.key);
    } else if (const auto segment = store::parse_segment_key(object.key)) {
      if (segment->slot <= head.slot && !history_.is_referenced(object.key)) leftover(object.key);
    } else if (const auto data = store::parse_data_key(object.key)) {
      if (data->kind != store::DataKind::kState) continue;
      const store::ProducerRow* row = head.find_producer(data->producer);
      const bool in_flight =
          row != nullptr && data->term == row->term && data->seq >= row->next_seq;
      const bool named = row != nullptr && row->state.ref && row->state_object() == *data;
      if (!in_flight && !named) leftover(object.key);
    }
  }
}

}  // namespace batchloom::simulator
