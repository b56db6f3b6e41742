// SPDX-License-Identifier: Apache-2.0
// A consumer's process in a StoreWorld: one rank of a trainer. It begins at a checkpoint, trains to
// the end of the stream, and (rank 0) pins checkpoints on its way.
#include <algorithm>

#include "batchloom/simulator/actor.h"
#include "batchloom/simulator/store_world_state.h"

namespace batchloom::simulator {
namespace {

using client::Consumer;
using client::ConsumerState;
using store::Pin;
using store::Step;

// One call of next() in so many has a deadline that may well pass.
constexpr std::uint64_t kNextDeadlineOdds = 8;
// One process in so many begins at an older step than any checkpoint's.
constexpr std::uint64_t kOlderOdds = 4;
// One step in so many is followed by a jump to a checkpoint, or to any older step.
constexpr std::uint64_t kSeekOdds = 80;
// One step in so many is followed by a pin of an older step, which may come too late.
constexpr std::uint64_t kExtraPinOdds = 12;
// The name of pins that are no checkpoints.
constexpr const char* kExtraPin = "extra";

class ConsumerActor {
 public:
  ConsumerActor(StoreWorld& world, Runtime& runtime, const store::Stream& stream, Trainer& trainer,
                std::size_t rank)
      : world_(world),
        runtime_(runtime),
        stream_(stream),
        trainer_(trainer),
        rank_(rank),
        feed_(stream),
        judge_(world.consumer_judge()) {}

  Status run() {
    if (leads()) BL_RETURN_IF_ERROR(tidy_pins());
    BL_RETURN_IF_ERROR(begin());
    BL_ASSIGN_OR_RETURN(const Tally tally, choose_start());
    BL_ASSIGN_OR_RETURN(const bool opened, open(tally));
    return opened ? train() : Status::ok();
  }

 private:
  bool leads() const { return rank_ == 0; }

  /// A predecessor may have died between a pin and the checkpoint, or between a checkpoint's end
  /// and its pin's.
  Status tidy_pins() {
    BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(stream_, trainer_.group(), {}));
    for (const Pin& pin : pins) {
      if (!trainer_.has_checkpoint(pin.name.id)) BL_RETURN_IF_ERROR(unpin(pin.name.id));
    }
    return Status::ok();
  }

  /// The job begins at the oldest step that there is, which rank 0 pins.
  Status begin() {
    while (!trainer_.has_begun()) {
      if (!leads()) {
        BL_RETURN_IF_ERROR(pause(runtime_));
        continue;
      }
      BL_ASSIGN_OR_RETURN(const store::HeadPtr head, feed_.refresh({}));
      BL_ASSIGN_OR_RETURN(const auto pin, pin_step(trainer_.next_id(), head->head.first_step));
      if (pin) trainer_.begin(*pin);
    }
    return Status::ok();
  }

  /// nullopt where it came too late.
  Result<std::optional<Pin>> pin_step(const std::string& id, Step step) {
    const auto pin =
        store::pin_step(stream_, {.group = trainer_.group(), .id = id, .step = step}, {});
    if (pin.is_ok()) {
      world_.judge().pin_told(*pin);
      return std::optional(*pin);
    }
    if (!pin.is(ErrorKind::kNotFound)) return pin.status();
    world_.judge().pin_refused(step);
    return std::optional<Pin>();
  }

  Status unpin(const std::string& id) {
    return store::unpin(stream_, trainer_.group(), id, {}).status();
  }

  /// Where to go on: at a checkpoint, as a rule.
  Result<Tally> choose_start() {
    if (one_in(runtime_, kOlderOdds)) {
      const Tally& older = any_saved();
      if (!leads() || one_in(runtime_, 2)) return older;
      BL_ASSIGN_OR_RETURN(const bool pinned, pin_extra(older.next));
      if (pinned) return older;
    }
    return any_checkpoint();
  }

  const Tally& any_checkpoint() {
    const std::vector<Pin> usable = trainer_.usable_checkpoints();
    return trainer_.saved(rank_).at(usable[draw(runtime_, usable.size())].step);
  }

  const Tally& any_saved() {
    const auto& saved = trainer_.saved(rank_);
    return std::next(saved.begin(), static_cast<std::ptrdiff_t>(draw(runtime_, saved.size())))
        ->second;
  }

  /// False where the step is trimmed, and where the trainer has to open all its ranks with a newer
  /// slot: another process begins elsewhere.
  Result<bool> open(const Tally& tally) {
    client::ConsumerOptions options = options_at(tally);
    opened_.rank = options.rank;
    opened_.ranks = trainer_.shape().ranks;
    opened_.min_slot = options.min_slot;
    if (leads()) world_.judge().cursor_opening(trainer_.group(), tally.next);
    auto consumer = Consumer::open(feed_, std::move(options), {});
    if (consumer.is(ErrorKind::kNotFound)) {
      trimmed(tally.next);
      return false;
    }
    if (consumer.is(ErrorKind::kConflict)) {
      judge_.refused(opened_);
      trainer_.raise_min_slot(feed_.seen()->head.slot);
      return false;
    }
    BL_ASSIGN_OR_RETURN(consumer_, std::move(consumer));
    opened_.opened_with = consumer_->opened_with();
    judge_.opened(opened_, tally);
    reached();
    if (leads()) world_.judge().cursor_told(trainer_.group(), tally.next);
    if (tally.next > tally.base) ++world_.counts().resumes;
    return true;
  }

  client::ConsumerOptions options_at(const Tally& tally) {
    const TrainerShape& shape = trainer_.shape();
    client::ConsumerOptions options{
        .rank = model::HdpRank(static_cast<std::uint32_t>(rank_)),
        .ranks = shape.ranks,
        .plan_step = nullptr,
        .start = tally.next,
        .samples_hash = tally.samples_hash,
        .last = tally.last,
        .min_slot = trainer_.min_slot(),
        // It has been there before, so neither matters.
        .beyond_end = one_in(runtime_, 2) ? client::BeyondEnd::kWait : client::BeyondEnd::kRefuse,
        .prefetch_bytes = shape.prefetch_bytes,
        .report_group = leads() ? trainer_.group() : "",
        .report_steps = shape.report_steps};
    if (shape.ranks != 0) {
      options.plan_step = [&sources = world_.sources(),
                           ranks = shape.ranks](const client::StoredStep& stored) {
        return sources.plan_anew(stored.indexed, ranks);
      };
    }
    return options;
  }

  /// What the group's cursor may say from now on.
  void reached() {
    if (leads()) world_.judge().group_reached(trainer_.group(), judge_.due());
  }

  void trimmed(Step step) {
    world_.judge().trimmed_told(step);
    ++world_.counts().trimmed_answers;
  }

  Status train() {
    for (;;) {
      const auto step = consumer_->next(draw_call(runtime_, kNextDeadlineOdds));
      if (step.is(ErrorKind::kUnavailable)) continue;
      if (step.is(ErrorKind::kNotFound)) {
        trimmed(judge_.tally().next);
        return Status::ok();
      }
      BL_RETURN_IF_ERROR(step.status());
      if (*step == nullptr) {
        judge_.at_end();
        ++world_.counts().ends;
        if (is_at_last_end()) return finish();
        BL_RETURN_IF_ERROR(pause(runtime_));
      } else {
        judge_.delivered(**step);
        reached();
        BL_RETURN_IF_ERROR(trained());
      }
      if (opened_.min_slot != trainer_.min_slot() && one_in(runtime_, 2)) return Status::ok();
    }
  }

  /// A step was delivered.
  Status trained() {
    ++world_.counts().consumer_steps;
    judge_.state_told(consumer_->state());
    trainer_.save(rank_, judge_.tally());
    if (leads() && ++since_checkpoint_ >= trainer_.shape().checkpoint_steps) {
      since_checkpoint_ = 0;
      BL_RETURN_IF_ERROR(checkpoint());
    }
    if (leads() && one_in(runtime_, kExtraPinOdds) && !has_extra_pin_) {
      BL_RETURN_IF_ERROR(pin_extra(any_saved().next).status());
    }
    if (one_in(runtime_, kSeekOdds)) return seek();
    return one_in(runtime_, 4) ? pause(runtime_) : Status::ok();
  }

  Status checkpoint() {
    BL_ASSIGN_OR_RETURN(const auto pin, pin_step(trainer_.next_id(), judge_.tally().next));
    if (pin) trainer_.add_checkpoint(*pin);
    if (has_extra_pin_) BL_RETURN_IF_ERROR(unpin(kExtraPin));
    has_extra_pin_ = false;
    const std::optional<Pin> oldest = trainer_.drop_oldest();
    if (!oldest) return Status::ok();
    BL_RETURN_IF_ERROR(unpin(oldest->name.id));
    if (one_in(runtime_, 3)) return Status::ok();
    // Somebody wants an older step after all, just when it is being trimmed.
    return pin_extra(older_step(oldest->step)).status();
  }

  /// False where it came too late.
  Result<bool> pin_extra(Step step) {
    BL_ASSIGN_OR_RETURN(const auto pin, pin_step(kExtraPin, step));
    has_extra_pin_ = pin.has_value();
    return has_extra_pin_;
  }

  /// `step`, or one a little below, or any from where this job began.
  Step older_step(Step step) {
    const std::uint64_t below = step - judge_.tally().base;
    switch (draw(runtime_, 3)) {
      case 0: return step;
      case 1: return judge_.tally().base + draw(runtime_, below + 1);
      default: return step - std::min(below, 1 + draw(runtime_, 6));
    }
  }

  Status seek() {
    const Tally tally = one_in(runtime_, 3) ? any_saved() : any_checkpoint();
    const bool opens = leads() && tally.next < judge_.tally().next;
    if (opens) world_.judge().cursor_opening(trainer_.group(), tally.next);
    const Status sought = consumer_->seek({.stream = stream_.uuid(),
                                           .next_step = tally.next,
                                           .samples_hash = tally.samples_hash,
                                           .last = tally.last},
                                          {});
    if (opens && sought.is(ErrorKind::kNotFound)) {
      trimmed(tally.next);
      return Status::ok();
    }
    BL_RETURN_IF_ERROR(sought);
    judge_.sought(tally);
    reached();
    if (opens) world_.judge().cursor_told(trainer_.group(), tally.next);
    ++world_.counts().seeks;
    return Status::ok();
  }

  /// Nothing will ever be appended, and nothing of it is left.
  bool is_at_last_end() const {
    const store::Head& head = world_.history().head();
    return world_.complete() && head.ended && judge_.due() == head.next_step;
  }

  Status finish() {
    const Status closed = consumer_->close({});
    if (!closed.is_ok()) return closed;
    judge_.check_whole(world_.history().head().next_step);
    trainer_.finish(rank_);
    return Status::ok();
  }

  StoreWorld& world_;
  Runtime& runtime_;
  const store::Stream& stream_;
  Trainer& trainer_;
  const std::size_t rank_;
  client::HeadFeed feed_;
  ConsumerJudge judge_;
  OpenedConsumer opened_;
  std::unique_ptr<Consumer> consumer_;
  std::uint64_t since_checkpoint_ = 0;
  bool has_extra_pin_ = false;
};

Status consume(StoreWorld& world, const Connection& connection, Trainer& trainer,
               std::size_t rank) {
  BL_ASSIGN_OR_RETURN(const auto stream, world.open_stream(connection));
  return ConsumerActor(world, *connection.process, *stream, trainer, rank).run();
}

}  // namespace

void run_consumer(StoreWorld& world, const Connection& connection, Trainer& trainer,
                  std::size_t rank) {
  world.ended(connection, consume(world, connection, trainer, rank));
}

}  // namespace batchloom::simulator
