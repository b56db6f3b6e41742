// SPDX-License-Identifier: Apache-2.0
// A producer's process in a StoreWorld: uploads and commits what is left of its source.
#include "batchloom/simulator/actor.h"
#include "batchloom/simulator/membership_keys.h"
#include "batchloom/simulator/source_state.h"
#include "batchloom/simulator/store_world_state.h"
#include "batchloom/store/ordered_appender.h"

namespace batchloom::simulator {
namespace {

using store::PendingBatch;
using store::ProducerSession;
using store::Seq;
using store::Slot;

// One commit in so many comes after a change of membership, as long as the world takes some.
constexpr std::uint64_t kMembershipOdds = 3;
// Digests are few, so that keys which hold already are set again.
constexpr std::uint64_t kDigests = 7;
// A change is for one of so many steps from the next one on.
constexpr std::uint64_t kMembershipSteps = 5;
// One commit in so many has a deadline that may well pass.
constexpr std::uint64_t kCommitDeadlineOdds = 4;

// A session and where it stands in its source.
class Producer {
 public:
  Producer(StoreWorld& world, const Connection& connection, const store::Stream& stream,
           ProducerSession& session)
      : world_(world),
        connection_(connection),
        runtime_(*connection.process),
        stream_(stream),
        session_(session),
        reader_(stream),
        ranks_(world.scenario().ranks),
        seq_(session.next_seq()) {}

  /// Until the source ends, or an error that another process has to deal with.
  Status produce() {
    if (world_.scenario().operations > 0) BL_RETURN_IF_ERROR(look_at_stream().status());
    return world_.scenario().ordered ? produce_ordered() : produce_all();
  }

 private:
  bool at_end() const { return seq_.value >= world_.scenario().objects; }

  Status produce_all() {
    while (!at_end()) {
      const std::uint64_t wanted = 1 + draw(runtime_, world_.scenario().commit_batches_max);
      std::vector<PendingBatch> batches;
      while (!at_end() && batches.size() < wanted) {
        BL_ASSIGN_OR_RETURN(batches.emplace_back(), upload_next());
      }
      if (one_in(runtime_, kMembershipOdds)) BL_RETURN_IF_ERROR(change_membership());
      BL_RETURN_IF_ERROR(commit(batches));
    }
    return Status::ok();
  }

  /// The same with several threads and an OrderedAppender.
  Status produce_ordered() {
    BL_RETURN_IF_ERROR(change_membership());
    const Slot newest_before = world_.history().newest();
    store::OrderedAppenderOptions options{.pending_bytes_max = 4000, .on_commit = {}};
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
    const Status ended = failed_.is_ok() ? appender.flush(seq_, {}) : failed_;
    if (!ended.is(ErrorKind::kInvalid)) return ended;
    refused(newest_before);
    return Status::unavailable("another process begins with what the stream takes now");
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

  Result<PendingBatch> upload_next() {
    const Seq seq = seq_;
    ++seq_;  // Before the first wait: constructors share it.
    return upload(seq);
  }

  Result<PendingBatch> upload(Seq seq) {
    const SyntheticBatches& batches = world_.sources().of(session_.producer(), ranks_);
    const SyntheticBatches::Object object = batches.object(seq);
    const store::BatchOptions options{.identity = {.stream = stream_.uuid(),
                                                   .producer = session_.producer(),
                                                   .term = session_.term(),
                                                   .seq = seq},
                                      .token_width = batches.config().token_width,
                                      .origin = batches.origin()};
    BL_ASSIGN_OR_RETURN(const store::BuiltBatch built, build_batch(options, object.steps()));
    const store::BatchInfo info{
        .seq = seq, .steps = built.steps, .ranks = built.ranks, .run_table = built.run_table};
    BL_ASSIGN_OR_RETURN(PendingBatch batch, session_.upload(info, built.parts, {}));
    const std::uint64_t records = world_.sources().records_per_object(session_.producer());
    batch.state_after =
        encode_source_state((seq.value + 1) * records, world_.scenario().state_padding_bytes);
    return batch;
  }

  Status commit(std::vector<PendingBatch>& batches) {
    Slot newest_before = world_.history().newest();
    for (;;) {
      const auto receipt = session_.commit(batches, draw_call(runtime_, kCommitDeadlineOdds));
      if (receipt.is_ok()) {
        world_.judge().committed(session_.producer(), session_.term(), batches, *receipt);
        return Status::ok();
      }
      const Status& error = receipt.status();
      if (error.is(ErrorKind::kInvalid)) {
        refused(newest_before);
        BL_RETURN_IF_ERROR(lay_out_anew(batches));
        newest_before = world_.history().newest();
      } else if (!error.is(ErrorKind::kUnavailable) && !error.is(ErrorKind::kUnknownOutcome)) {
        return error;
      }
    }
  }

  store::Step draw_membership_step(const store::Head& head) {
    const store::Step next_step = head.next_step;
    const bool may_replace =
        !head.memberships.empty() && head.memberships.back().from_step >= next_step;
    if (may_replace && one_in(runtime_, 2)) return head.memberships.back().from_step;
    return next_step + draw(runtime_, kMembershipSteps);
  }

  /// Other keys decide membership, from a step on that comes soon or has been passed meanwhile.
  Status change_membership() {
    if (!world_.take_membership()) return Status::ok();
    BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader_.latest({}));
    store::Membership wanted{.from_step = draw_membership_step(head->head),
                             .digest = {.high = 0, .low = draw(runtime_, kDigests)},
                             .keys = {}};
    wanted.keys = membership_keys(wanted.digest);
    for (;;) {
      const auto receipt =
          session_.set_membership(wanted, draw_call(runtime_, kCommitDeadlineOdds));
      if (receipt.is_ok()) {
        world_.judge().event_told({.membership = wanted}, *receipt);
        return Status::ok();
      }
      const Status& error = receipt.status();
      if (error.is(ErrorKind::kInvalid)) {
        world_.judge().membership_refused(wanted.from_step, world_.is_distorted(connection_));
        return Status::ok();
      }
      if (!error.is(ErrorKind::kUnavailable) && !error.is(ErrorKind::kUnknownOutcome)) return error;
    }
  }

  void refused(Slot newest_before) {
    world_.judge().commit_refused(session_.producer(), ranks_, newest_before,
                                  world_.is_distorted(connection_));
  }

  /// Waits while the stream is ended, and takes over its topology.
  Result<store::HeadPtr> look_at_stream() {
    for (;;) {
      BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader_.latest({}));
      if (!head->head.ended) {
        const store::TopologyRow* topology = head->head.topology_at(head->head.next_step);
        if (topology != nullptr) ranks_ = topology->ranks;
        return head;
      }
      if (world_.complete()) return Status::unavailable("the stream has ended for good");
      BL_RETURN_IF_ERROR(pause(runtime_));
    }
  }

  /// Once the stream takes batches again: those that are not committed, for its topology. None is
  /// in flight, since a later slot has refused them.
  Status lay_out_anew(std::vector<PendingBatch>& batches) {
    BL_ASSIGN_OR_RETURN(const store::HeadPtr head, look_at_stream());
    const store::ProducerRow* row = head->head.find_producer(session_.producer());
    if (row == nullptr || row->term != session_.term()) return Status::ok();  // Commit finds out.
    for (PendingBatch& batch : batches) {
      if (batch.seq < row->next_seq || batch.ranks == ranks_) continue;
      BL_ASSIGN_OR_RETURN(batch, upload(batch.seq));
    }
    return Status::ok();
  }

  StoreWorld& world_;
  const Connection& connection_;
  Runtime& runtime_;
  const store::Stream& stream_;
  ProducerSession& session_;
  store::ManifestReader reader_;
  std::uint32_t ranks_;
  Seq seq_;
  Status failed_;  // Of the last constructor that failed.
};

Status produce(StoreWorld& world, const Connection& connection, const std::string& name) {
  Runtime& runtime = *connection.process;
  BL_ASSIGN_OR_RETURN(const auto stream, world.open_stream(connection));
  BL_ASSIGN_OR_RETURN(const auto session, ProducerSession::open(*stream, name, {}));
  world.judge().session_opened(*session);
  BL_RETURN_IF_ERROR(Producer(world, connection, *stream, *session).produce());
  if (draw(runtime, 1000) < world.scenario().finish_per_mille)
    BL_RETURN_IF_ERROR(session->finish({}));
  world.mark_done(name);
  return Status::ok();
}

}  // namespace

void run_producer(StoreWorld& world, const Connection& connection, const std::string& name) {
  world.ended(connection, produce(world, connection, name));
}

}  // namespace batchloom::simulator
