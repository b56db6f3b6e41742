// SPDX-License-Identifier: Apache-2.0
// `batchloom consume`: a rank without a model. It reads steps in order, says what was in them, and
// pins and reports as a training job does.
#include "batchloom/client/consumer.h"

#include <fmt/format.h>

#include <utility>

#include "batchloom/client/checkpoint_pins.h"
#include "cli/commands.h"
#include "cli/deal_samples.h"
#include "cli/pace.h"
#include "cli/step_log.h"
#include "cli/stop_signals.h"

namespace batchloom::cli {
namespace {

/// What was read.
struct Consumed {
  std::uint64_t steps = 0;
  std::uint64_t fetched_bytes = 0;  ///< Of runs and pieces, not of indexes and run tables.
  std::uint64_t payload_bytes = 0;
  bool ended = false;  ///< The stream's end was reached.
};

/// Takes steps from a consumer until there is a reason not to. Owned by its thread.
class Reading {
 public:
  Reading(const Consume& args, const store::Stream& stream, client::Consumer& consumer,
          StepLog& log, const StopSignals& signals)
      : args_(args), stream_(stream), consumer_(consumer), log_(log), signals_(signals) {}

  /// Ok: as many as were asked for, or the stream's or stdin's end, or a signal.
  Status run();

  const Consumed& consumed() const { return consumed_; }

 private:
  /// `before` is where the consumer stood.
  Status take(const client::StepBatch& batch, store::Step before);

  const Consume& args_;
  const store::Stream& stream_;
  client::Consumer& consumer_;
  StepLog& log_;
  const StopSignals& signals_;
  Pace pace_;
  Consumed consumed_;
};

Status Reading::run() {
  const CallOptions call{.deadline = kNever, .stop = signals_.token()};
  while (!args_.steps || consumed_.steps < *args_.steps) {
    if (args_.paced && !pace_.next(call.stop)) return Status::ok();
    const store::Step before = consumer_.cursor();
    const auto batch = consumer_.next(call);
    if (batch.is(ErrorKind::kCancelled) && signals_.came()) return Status::ok();
    BL_RETURN_IF_ERROR(batch.status());
    if (*batch == nullptr) {
      consumed_.ended = true;
      return Status::ok();
    }
    BL_RETURN_IF_ERROR(take(**batch, before));
  }
  return Status::ok();
}

Status Reading::take(const client::StepBatch& batch, store::Step before) {
  ++consumed_.steps;
  consumed_.fetched_bytes += batch.fetched_bytes;
  consumed_.payload_bytes += batch.payload_bytes();
  BL_RETURN_IF_ERROR(log_.add(batch));
  if (!args_.pin_every) return Status::ok();
  // A step that is skipped lets the cursor pass a multiple without standing there.
  const store::Step next = consumer_.cursor();
  if (before.value / *args_.pin_every == next.value / *args_.pin_every) return Status::ok();
  const store::PinRequest request{
      .group = args_.group, .id = fmt::format("step-{}", next.value), .step = next};
  return client::pin_checkpoint(stream_, request, args_.keep, {});
}

client::ConsumerOptions options_of(const Consume& args) {
  client::ConsumerOptions options;
  options.rank = args.rank;
  options.start = args.start;
  options.min_slot = args.min_slot;
  options.prefetch_bytes = args.prefetch_bytes;
  if (args.report) options.report_group = args.group;
  options.report_steps = args.report_every;
  if (args.world) {
    options.plan_step = [ranks = *args.world](const client::StoredStep& stored) {
      return deal_samples(stored.indexed, ranks);
    };
  }
  return options;
}

Fields describe(const Consume& args, const Consumed& consumed, const client::ConsumerState& state,
                Counters& counters, double seconds) {
  const auto per_second = [&](std::uint64_t n) {
    return seconds > 0 ? static_cast<double>(n) / seconds : 0;
  };
  const auto payload = static_cast<double>(consumed.payload_bytes);
  const std::uint64_t stall_ns = counters.counter("client_stall_ns").value();
  Fields fields;
  fields.add("rank", std::uint64_t{args.rank.value})
      .add("steps", consumed.steps)
      .add("next_step", state.next_step.value)
      .add("samples_hash", fmt::format("{:016x}", state.samples_hash))
      .add("ended", consumed.ended)
      .add("fetched_bytes", consumed.fetched_bytes)
      .add("payload_bytes", consumed.payload_bytes)
      .add("get_bytes", counters.counter("objstore_get_bytes").value())
      .add_decimal("fetched_per_payload",
                   payload > 0 ? static_cast<double>(consumed.fetched_bytes) / payload : 0, 4)
      .add_decimal("seconds", seconds, 3)
      .add_decimal("steps_per_s", per_second(consumed.steps), 1)
      .add_decimal("mb_per_s", per_second(consumed.payload_bytes) / 1e6, 1)
      .add("stalls", counters.counter("client_stalls").value())
      .add_decimal("stall_s", static_cast<double>(stall_ns) / 1e9, 3);
  return fields;
}

}  // namespace

Status run(const Consume& args, Runtime& runtime) {
  const StopSignals signals(runtime);
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(short_call(runtime)));
  BL_ASSIGN_OR_RETURN(StepLog log, StepLog::open(args.hashes, args.stream.json));
  client::HeadFeed feed(*stream);
  const CallOptions call{.deadline = kNever, .stop = signals.token()};
  auto opened = client::Consumer::open(feed, options_of(args), call);
  if (opened.is(ErrorKind::kCancelled) && signals.came()) return Status::ok();
  BL_ASSIGN_OR_RETURN(const auto consumer, std::move(opened));

  const Time begin = runtime.now();
  Reading reading(args, *stream, *consumer, log, signals);
  Status done = reading.run();
  const double seconds = std::chrono::duration<double>(runtime.now() - begin).count();
  // After an error the group still needs its steps: whoever opens it again goes on there.
  if (done.is_ok()) done = consumer->close(short_call(runtime));
  print_result(describe(args, reading.consumed(), consumer->state(), store->counters(), seconds),
               args.stream.json);
  return done;
}

}  // namespace batchloom::cli
