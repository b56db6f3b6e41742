// SPDX-License-Identifier: Apache-2.0
// The processes of a StoreWorld: what users of the store do.
#include <algorithm>

#include "batchloom/simulator/store_world_state.h"
#include "batchloom/store/ordered_appender.h"
#include "batchloom/store/reclaimer.h"

namespace batchloom::simulator {
namespace {

using store::PendingBatch;
using store::ProducerSession;

constexpr Duration kPause = std::chrono::milliseconds(5);
// One commit in so many has a deadline that may well pass.
constexpr std::uint64_t kDeadlineOdds = 4;

std::uint64_t draw(Runtime& runtime, std::uint64_t n) {
  return runtime.random() % n;
}

Status pause(Runtime& runtime) {
  const Duration length = kPause * static_cast<Duration::rep>(1 + draw(runtime, 8)) / 4;
  return runtime.sleep_until({.deadline = runtime.now() + length, .stop = {}});
}

CallOptions draw_call(Runtime& runtime) {
  if (draw(runtime, kDeadlineOdds) != 0) return {};
  return {.deadline = runtime.now() + kPause, .stop = {}};
}

// One producer process: a session and where it stands in its source.
class Producer {
 public:
  Producer(StoreWorld& world, const Connection& connection, ProducerSession& session)
      : world_(world),
        runtime_(*connection.process),
        session_(session),
        record_(decode_source_state(session.state())),
        seq_(session.next_seq()) {}

  /// Until the source ends, or an error that another process has to deal with.
  Status produce_all() {
    while (!at_end()) {
      const std::uint64_t wanted = 1 + draw(runtime_, world_.scenario().commit_batches_max);
      std::vector<PendingBatch> batches;
      while (!at_end() && batches.size() < wanted) {
        BL_ASSIGN_OR_RETURN(batches.emplace_back(), upload_next());
      }
      BL_RETURN_IF_ERROR(commit(batches));
    }
    return Status::ok();
  }

  /// The same with several threads and an OrderedAppender.
  Status produce_ordered() {
    store::OrderedAppenderOptions options{.pending_bytes_max = 100, .on_commit = {}};
    options.on_commit = [this](std::span<const PendingBatch> batches,
                               const store::CommitReceipt& receipt) {
      world_.judge().committed(session_.producer(), session_.term(), batches, receipt);
    };
    store::OrderedAppender appender(runtime_, session_, std::move(options));
    {
      const auto work = [this, &appender](const std::stop_token&) { upload_and_submit(appender); };
      const auto one = runtime_.spawn("constructor", work);
      const auto two = runtime_.spawn("constructor", work);
      one->join();
      two->join();
    }
    // After a failed upload a sequence number is missing: nothing behind it can be committed.
    BL_RETURN_IF_ERROR(failed_);
    return appender.flush(seq_, {});
  }

 private:
  bool at_end() const { return record_ >= world_.scenario().records; }

  // Takes the next records and uploads them as one batch. Seq and record move before the first
  // wait.
  Result<PendingBatch> upload_next() {
    BatchBody body{.producer = session_.producer(), .from = record_, .to = 0};
    body.to = std::min(record_ + 1 + draw(runtime_, 4), world_.scenario().records);
    record_ = body.to;
    store::BatchInfo info{.seq = seq_, .steps = 1, .ranks = 2, .run_table = {}};
    info.steps = static_cast<std::uint32_t>(1 + draw(runtime_, world_.scenario().pack_max));
    ++seq_;
    const Bytes bytes = encode_body(body);
    const ByteSpan part = bytes;
    BL_ASSIGN_OR_RETURN(PendingBatch batch, session_.upload(info, std::span(&part, 1), {}));
    batch.state_after = encode_source_state(body.to, world_.scenario().state_padding_bytes);
    return batch;
  }

  Status commit(std::span<const PendingBatch> batches) {
    for (;;) {
      const auto receipt = session_.commit(batches, draw_call(runtime_));
      if (receipt.is_ok()) {
        world_.judge().committed(session_.producer(), session_.term(), batches, *receipt);
        return Status::ok();
      }
      const Status& error = receipt.status();
      if (!error.is(ErrorKind::kUnavailable) && !error.is(ErrorKind::kUnknownOutcome)) return error;
    }
  }

  void upload_and_submit(store::OrderedAppender& appender) {
    while (!at_end()) {
      auto batch = upload_next();
      const Status submitted =
          batch.is_ok() ? appender.submit(*std::move(batch), {}) : batch.status();
      if (!submitted.is_ok()) {
        failed_ = submitted;
        return;
      }
    }
  }

  StoreWorld& world_;
  Runtime& runtime_;
  ProducerSession& session_;
  std::uint64_t record_;
  store::Seq seq_;
  Status failed_;  // Of the last constructor that failed.
};

Status produce(StoreWorld& world, const Connection& connection, const std::string& name) {
  Runtime& runtime = *connection.process;
  BL_ASSIGN_OR_RETURN(const auto stream, world.open_stream(connection));
  BL_ASSIGN_OR_RETURN(const auto session, ProducerSession::open(*stream, name, {}));
  world.judge().session_opened(*session);
  Producer producer(world, connection, *session);
  BL_RETURN_IF_ERROR(world.scenario().ordered ? producer.produce_ordered()
                                              : producer.produce_all());
  if (draw(runtime, 1000) < world.scenario().finish_per_mille)
    BL_RETURN_IF_ERROR(session->finish({}));
  world.mark_done(name);
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
    if (head->head.next_step.value > 0) {
      const store::Step step(draw(runtime, head->head.next_step.value));
      BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head->head, step, {}));
      world.judge().entry_read(step, entry);
    }
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
void run_producer(StoreWorld& world, const Connection& connection, const std::string& name) {
  world.ended(connection, produce(world, connection, name));
}

void run_observer(StoreWorld& world, const Connection& connection) {
  world.ended(connection, observe(world, connection));
}

void run_reclaimer(StoreWorld& world, const Connection& connection) {
  world.ended(connection, reclaim(world, connection));
}

}  // namespace batchloom::simulator
