// SPDX-License-Identifier: Apache-2.0
// The processes of a StoreWorld that look after the stream, or just look at it.
#include "batchloom/simulator/actor.h"
#include "batchloom/simulator/store_world_state.h"
#include "batchloom/store/membership.h"
#include "batchloom/store/reclaimer.h"

namespace batchloom::simulator {
namespace {

Status look_at_membership(StoreWorld& world, const store::Stream& stream, store::Step step) {
  const store::Slot newest_before = world.history().newest();
  const auto read = store::read_membership(stream, step, {});
  if (!read.is_ok() && !read.is(ErrorKind::kNotFound)) return read.status();
  world.judge().membership_read(step, read.is_ok() ? std::optional(*read) : std::nullopt,
                                newest_before);
  return Status::ok();
}

Status observe(StoreWorld& world, const Connection& connection) {
  Runtime& runtime = *connection.process;
  BL_ASSIGN_OR_RETURN(const auto stream, world.open_stream(connection));
  store::ManifestReader reader(*stream);
  store::SegmentReader segments(*stream);
  store::Slot last_seen;
  while (!world.finishing()) {
    const store::Slot newest_before = world.history().newest();
    BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest({}));
    world.judge().head_read(*head, newest_before, last_seen);
    last_seen = head->head.slot;
    const store::Step first_step = head->head.first_step;
    if (head->head.next_step > first_step) {
      const store::Step step = first_step + draw(runtime, head->head.next_step - first_step);
      const auto entry = segments.find(head->head, step, {});
      if (entry.is_ok()) {
        world.judge().entry_read(step, *entry);
      } else {
        // Its segments may have gone with the step; only then may it be called damaged.
        BL_ASSIGN_OR_RETURN(const store::HeadPtr now, reader.latest({}));
        if (step >= now->head.first_step) return entry.status();
        world.judge().trimmed_told(step);
      }
    }
    const store::Step next_step = head->head.next_step;
    BL_RETURN_IF_ERROR(
        look_at_membership(world, *stream, first_step + draw(runtime, next_step - first_step + 5)));
    BL_RETURN_IF_ERROR(pause(runtime));
  }
  return Status::ok();
}

Status reclaim(StoreWorld& world, const Connection& connection) {
  BL_ASSIGN_OR_RETURN(const auto stream, world.open_stream(connection));
  store::Reclaimer reclaimer(*stream);
  while (!world.finishing()) {
    BL_ASSIGN_OR_RETURN(const store::ReclaimReport report, reclaimer.run({}));
    static_cast<void>(report);
    world.reclaimed();
    BL_RETURN_IF_ERROR(pause(*connection.process));
  }
  return Status::ok();
}

}  // namespace

// An actor that ends with an error is a process that exits; the world starts another one.
void run_observer(StoreWorld& world, const Connection& connection) {
  world.ended(connection, observe(world, connection));
}

void run_reclaimer(StoreWorld& world, const Connection& connection) {
  world.ended(connection, reclaim(world, connection));
}

}  // namespace batchloom::simulator
