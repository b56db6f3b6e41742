// SPDX-License-Identifier: Apache-2.0
// `batchloom produce`
//
//  1. The newest head shows whether these options go on with what this producer has committed. If
//     not, nobody is fenced.
//  2. A session fences older ones of this producer, and its state says which batch comes next.
//  3. This thread hands out batches in order, as far as the lead allows (control/lead_gate.h).
//  4. Uploaders build them, upload them and hand them in, each at its own pace; the appender
//     commits them in order.
//  5. After the last one, or a signal, nothing more is handed out, and what was, is committed.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "batchloom/base/channel.h"
#include "batchloom/base/log.h"
#include "batchloom/control/lead_gate.h"
#include "batchloom/store/committed_state.h"
#include "batchloom/store/ordered_appender.h"
#include "cli/commands.h"
#include "cli/stop_signals.h"
#include "cli/synthetic_producer.h"

namespace batchloom::cli {
namespace {

using simulator::SyntheticBatches;
using store::Seq;

/// What a run has committed.
struct Produced {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  store::Step next_step;  ///< Of the stream.
};

/// One session's way to `end`. run() once; owned by its thread.
class Production {
 public:
  Production(const Produce& args, const store::Stream& stream, const SyntheticBatches& batches,
             store::ProducerSession& session, store::Step next_step)
      : args_(args),
        stream_(stream),
        batches_(batches),
        session_(session),
        gate_(stream, {.lead = args.lead, .url = args.stream.location.url, .next_step = next_step}),
        queue_(stream.runtime(), args.uploaders),
        produced_{.next_step = next_step},
        appender_(stream.runtime(), session,
                  {.on_commit =
                       [this](auto committed, const store::CommitReceipt& receipt) {
                         note_commit(committed, receipt);
                       },
                   .on_failure = [this](const Status& error) { fail(error); }}) {}

  /// Ok: everything up to the end, or to where `stop` came between, is committed.
  Status run(const std::stop_token& stop);

  Produced produced() const {
    const MutexLock lock(mutex_);
    return produced_;
  }

 private:
  Status hand_out(const std::stop_token& stop);
  void upload_loop();
  Status upload(Seq seq);
  void note_commit(std::span<const store::PendingBatch> committed,
                   const store::CommitReceipt& receipt);
  void fail(const Status& error);
  CallOptions until_failure() const { return {.deadline = kNever, .stop = failure_.get_token()}; }

  const Produce& args_;
  const store::Stream& stream_;
  const SyntheticBatches& batches_;
  store::ProducerSession& session_;
  control::LeadGate gate_;
  Channel<Seq> queue_;
  Seq end_;  // After the last one that was handed out.
  std::stop_source failure_;

  mutable Mutex mutex_;
  Status failed_ BL_GUARDED_BY(mutex_);  // The first failure: others follow from it.
  Produced produced_ BL_GUARDED_BY(mutex_);

  store::OrderedAppender appender_;  // Last: it uses what stands above.
};

Status Production::run(const std::stop_token& stop) {
  std::vector<std::unique_ptr<Task>> uploaders;
  for (std::uint32_t i = 0; i < args_.uploaders; ++i) {
    uploaders.push_back(
        stream_.runtime().spawn("uploader", [this](const std::stop_token&) { upload_loop(); }));
  }
  const Status handed_out = hand_out(stop);
  if (!handed_out.is_ok()) fail(handed_out);
  queue_.close();
  uploaders.clear();  // Joins them.
  if (handed_out.is_ok()) {
    const Status committed = appender_.flush(end_, until_failure());
    if (!committed.is_ok()) fail(committed);
  }
  const MutexLock lock(mutex_);
  return failed_;
}

Status Production::hand_out(const std::stop_token& stop) {
  const std::uint64_t steps = batches_.config().steps_per_object;
  // A failure ends the waiting as a signal does.
  std::stop_source either;
  const std::stop_callback on_signal(stop, [&] { either.request_stop(); });
  const std::stop_callback on_failure(failure_.get_token(), [&] { either.request_stop(); });
  const CallOptions call{.deadline = kNever, .stop = either.get_token()};
  end_ = session_.next_seq();
  while (!args_.steps || end_.value * steps < *args_.steps) {
    Status room = gate_.wait(steps, call);
    if (room.is_ok()) room = queue_.send(end_, 1, call);
    if (room.is(ErrorKind::kCancelled)) return Status::ok();
    BL_RETURN_IF_ERROR(room);
    ++end_;
  }
  return Status::ok();
}

void Production::upload_loop() {
  for (;;) {
    const Result<std::optional<Seq>> seq = queue_.receive(until_failure());
    if (!seq.is_ok() || !*seq) return;
    const Status done = upload(**seq);
    if (!done.is_ok()) return fail(done);
  }
}

Status Production::upload(Seq seq) {
  BL_ASSIGN_OR_RETURN(store::PendingBatch batch,
                      upload_synthetic(stream_, session_, batches_, seq, until_failure()));
  return appender_.submit(std::move(batch), until_failure());
}

void Production::note_commit(std::span<const store::PendingBatch> committed,
                             const store::CommitReceipt& receipt) {
  std::uint64_t steps = 0;
  {
    const MutexLock lock(mutex_);
    for (const store::PendingBatch& batch : committed) {
      steps += batch.steps;
      produced_.bytes += batch.size_bytes;
    }
    produced_.objects += committed.size();
    produced_.next_step = receipt.next_step;
  }
  gate_.note_commit(steps, receipt.next_step);
}

void Production::fail(const Status& error) {
  {
    const MutexLock lock(mutex_);
    if (failed_.is_ok()) failed_ = error;
  }
  failure_.request_stop();
}

Fields describe(const store::ProducerSession& session, const Produce& args,
                const Produced& produced, double seconds) {
  const std::uint64_t per_object = args.config.steps_per_object;
  const double per_second = seconds > 0 ? 1 / seconds : 0;
  Fields fields;
  fields.add("producer", session.producer())
      .add("term", session.term().value)
      .add("first_seq", session.next_seq().value)
      .add("next_seq", (session.next_seq() + produced.objects).value)
      .add("steps", produced.objects * per_object)
      .add("bytes", produced.bytes)
      .add("next_step", produced.next_step.value)
      .add_decimal("seconds", seconds, 3)
      .add_decimal("steps_per_s", static_cast<double>(produced.objects * per_object) * per_second,
                   1)
      .add_decimal("mb_per_s", static_cast<double>(produced.bytes) * per_second / 1e6, 1);
  return fields;
}

Result<store::Step> next_step_of(const store::Stream& stream, const CallOptions& call) {
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  return head->head.next_step;
}

/// Whether `args` go on with what the producer has committed, as far as can be told without fencing
/// a session that may be at work.
Status check_unfenced(const Produce& args, const store::Stream& stream, const CallOptions& call) {
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  const store::ProducerRow* row = head->head.find_producer(args.producer);
  if (row == nullptr) return Status::ok();
  BL_ASSIGN_OR_RETURN(const std::optional<Bytes> state, store::committed_state(stream, *row, call));
  return state ? check_synthetic_state(*state, args.config, row->next_seq) : Status::ok();
}

Result<std::unique_ptr<store::ProducerSession>> open_session(const Produce& args,
                                                             const store::Stream& stream,
                                                             const CallOptions& call) {
  const std::string context = "producer " + args.producer;
  const Status fitted = check_unfenced(args, stream, call);
  if (!fitted.is_ok()) return fitted.with_context(context);
  BL_ASSIGN_OR_RETURN(auto session, store::ProducerSession::open(stream, args.producer, call));
  // An older session may have committed since.
  const Status fits = check_synthetic_state(session->state(), args.config, session->next_seq());
  if (!fits.is_ok()) return fits.with_context(context);
  log_info(fmt::format("producer {}: term {}, goes on at batch {}", args.producer,
                       session->term().value, session->next_seq().value));
  return session;
}

}  // namespace

Status run(const Produce& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto batches, SyntheticBatches::create(args.config));
  const StopSignals signals(runtime);
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::create(args.stream.location, runtime));
  const auto made = store::init_stream(store->deps(), "batchloom " BATCHLOOM_VERSION, call);
  if (!made.is_ok()) return made.status().with_context(args.stream.location.url);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  BL_ASSIGN_OR_RETURN(const auto session, open_session(args, *stream, call));
  BL_ASSIGN_OR_RETURN(const store::Step next_step, next_step_of(*stream, call));

  const Time begin = runtime.now();
  Production production(args, *stream, *batches, *session, next_step);
  Status done = production.run(signals.token());
  const double seconds = std::chrono::duration<double>(runtime.now() - begin).count();
  // Whoever stopped it may want to go on.
  if (done.is_ok() && args.end && !signals.came()) done = session->end_stream({});
  print_result(describe(*session, args, production.produced(), seconds), args.stream.json);
  return done;
}

}  // namespace batchloom::cli
