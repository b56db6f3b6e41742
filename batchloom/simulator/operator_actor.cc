// SPDX-License-Identifier: Apache-2.0
// The operator's process in a StoreWorld: now and then an event, and the end of the stream once all
// producers are done.
#include <fmt/format.h>

#include "batchloom/simulator/actor.h"
#include "batchloom/simulator/store_world_state.h"
#include "batchloom/store/stream_events.h"

namespace batchloom::simulator {
namespace {

using store::EditReceipt;
using store::HeadPtr;
using store::Step;

// One pause in so many is followed by a look at the stream.
constexpr std::uint64_t kLookOdds = 10;

const ToldEvent kEnded{.ended = true};
const ToldEvent kReopened{.ended = false};

class Operator {
 public:
  Operator(StoreWorld& world, Runtime& runtime, const store::Stream& stream)
      : world_(world), runtime_(runtime), stream_(stream), reader_(stream) {}

  Status run() {
    while (!world_.produced()) {
      BL_RETURN_IF_ERROR(pause(runtime_));
      if (!one_in(runtime_, kLookOdds)) continue;
      BL_ASSIGN_OR_RETURN(const HeadPtr head, reader_.latest({}));
      // Whoever ended it may have died before it could reopen it.
      if (head->head.ended) {
        BL_RETURN_IF_ERROR(told(kReopened, store::reopen_stream(stream_, {})));
      } else if (head->head.next_step > Step(0) && world_.take_operation()) {
        BL_RETURN_IF_ERROR(operate(head->head));
      }
    }
    BL_RETURN_IF_ERROR(told(kEnded, store::end_stream(stream_, {})));
    world_.mark_complete();
    while (!world_.finishing()) BL_RETURN_IF_ERROR(pause(runtime_));
    return Status::ok();
  }

 private:
  Status operate(const store::Head& head) {
    switch (draw(runtime_, 4)) {
      case 0: return told(kEnded, store::end_stream(stream_, {}));
      case 1: return set_topology();
      default: return skip(head);
    }
  }

  Status set_topology() {
    const StoreScenario& scenario = world_.scenario();
    const std::uint32_t ranks = one_in(runtime_, 2) ? scenario.ranks : scenario.other_ranks;
    BL_ASSIGN_OR_RETURN(const auto topology,
                        model::Topology::create({{.axis = model::Axis::kDp, .extent = ranks}}));
    return told({.ranks = ranks}, store::set_topology(stream_, topology, {}));
  }

  /// Then all trainers have to pass over the step, once they open again.
  Status skip(const store::Head& head) {
    if (head.first_step == head.next_step) return Status::ok();
    const Step step = head.first_step + draw(runtime_, head.next_step - head.first_step);
    const auto receipt = store::skip_step(stream_, step, {});
    if (receipt.is(ErrorKind::kNotFound)) {
      world_.judge().trimmed_told(step);
      return Status::ok();
    }
    if (receipt.is_ok()) {
      for (Trainer& trainer : world_.trainers()) {
        trainer.raise_min_slot((*receipt).head->head.slot);
      }
    }
    return told({.skipped = step}, receipt);
  }

  Status told(const ToldEvent& event, const Result<EditReceipt>& receipt) {
    if (!receipt.is_ok()) return receipt.status();
    world_.judge().event_told(event, *receipt);
    return Status::ok();
  }

  StoreWorld& world_;
  Runtime& runtime_;
  const store::Stream& stream_;
  store::ManifestReader reader_;
};

Status operate(StoreWorld& world, const Connection& connection) {
  BL_ASSIGN_OR_RETURN(const auto stream, world.open_stream(connection));
  return Operator(world, *connection.process, *stream).run();
}

}  // namespace

void run_operator(StoreWorld& world, const Connection& connection) {
  world.ended(connection, operate(world, connection));
}

}  // namespace batchloom::simulator
