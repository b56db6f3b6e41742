// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/consumer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/log.h"
#include "batchloom/client/cursor_reporter.h"
#include "batchloom/client/prefetcher.h"

namespace batchloom::client {

using store::Head;
using store::HeadPtr;

namespace {

/// What a refusal may wait for the store, where the call has as long.
constexpr std::chrono::seconds kReleaseTime{10};

Status check_rank(const ConsumerOptions& options) {
  if (options.ranks == 0 || options.rank.value < options.ranks) return Status::ok();
  return Status::invalid(fmt::format("rank {} is none of {} HDP ranks, which count from 0",
                                     options.rank.value, options.ranks));
}

Status check_start(const Head& head, const ConsumerOptions& options) {
  if (options.start < head.first_step) return trimmed(options.start, head.first_step);
  if (options.start > head.next_step && head.ended) {
    return Status::invalid(fmt::format("step {} will not come: the stream has ended before step {}",
                                       options.start.value, head.next_step.value));
  }
  if (options.start > head.next_step && options.beyond_end == BeyondEnd::kRefuse) {
    return Status::invalid(fmt::format(
        "step {} is not there: the stream ends before step {} (slot {}); is the checkpoint of "
        "another stream?",
        options.start.value, head.next_step.value, head.slot.value));
  }
  return Status::ok();
}

/// The head whose SKIPs hold: exactly min_slot's where that can be. The newest one will do as well,
/// as long as it skips nothing that is still to be read.
Result<HeadPtr> head_of_skips(const store::Stream& stream, const ConsumerOptions& options,
                              const HeadPtr& newest, const CallOptions& call) {
  const Slot min_slot = options.min_slot;
  const Head& head = newest->head;
  if (min_slot == Slot() || min_slot == head.slot) return newest;
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(const std::optional<HeadPtr> exact, reader.at(min_slot, call));
  if (exact) return *exact;
  const auto skipped = std::ranges::lower_bound(head.skipped, options.start);
  if (skipped == head.skipped.end()) return newest;
  return Status::conflict(fmt::format(
      "the head of slot {} is gone, and the newest one skips step {}, which other ranks may have "
      "read: open all ranks again with min_slot = {}, the newest slot",
      min_slot.value, skipped->value, head.slot.value));
}

/// With the SKIPs of a head.
std::unique_ptr<StepFetcher> make_fetcher(HeadFeed& feed, const ConsumerOptions& options,
                                          const Head& skips) {
  return std::make_unique<StepFetcher>(feed, FetchOptions{.rank = options.rank,
                                                          .ranks = options.ranks,
                                                          .plan_step = options.plan_step,
                                                          .topology = options.topology,
                                                          .admit = options.admit,
                                                          .ring_max = options.ring_max,
                                                          .skipped = skips.skipped});
}

/// A stream that this job has no room for, or cannot train on, is refused before anything waits for
/// it. Everything else that may be wrong with the first step is said by the next() that wants it.
Status check_stream_suits(StepFetcher& fetcher, const ConsumerOptions& options, const Head& newest,
                          const CallOptions& call) {
  const Step first = fetcher.after_skipped(options.start);
  const bool asks = options.plan_step != nullptr || options.admit != nullptr;
  if (!asks || first >= newest.next_step) return Status::ok();
  const Status prepared = fetcher.prepare(newest, first, call).status();
  const ErrorCase why = prepared.error_case();
  const bool suits = why != ErrorCase::kDoesNotFit && why != ErrorCase::kSplitSamples;
  return suits ? Status::ok() : prepared;
}

/// Whether the group's cursor was not open before.
Result<bool> open_cursor(const store::Stream& stream, const ConsumerOptions& options,
                         const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto before,
                      store::read_live_cursor(stream, options.report_group, call));
  BL_RETURN_IF_ERROR(
      store::open_live_cursor(stream, options.report_group, options.start, call).status());
  return !before || before->closed;
}

std::uint64_t distance(Step a, Step b) {
  return a < b ? b - a : a - b;
}

}  // namespace

class Consumer::Impl {
 public:
  Impl(HeadFeed& feed, const ConsumerOptions& options, const Head& opened_with,
       std::unique_ptr<StepFetcher> fetcher, bool opened_cursor)
      : feed_(feed),
        stream_(feed.stream()),
        group_(options.report_group),
        report_steps_(std::max(options.report_steps, 1U)),
        opened_with_(opened_with.slot),
        skipped_(opened_with.skipped),
        steps_(stream_.counters().counter("client_steps")),
        delivered_bytes_(stream_.counters().counter("client_delivered_bytes")),
        position_{.stream = stream_.uuid(),
                  .next_step = options.start,
                  .samples_hash = options.samples_hash,
                  .last = options.last},
        opened_cursor_(opened_cursor),
        reported_(options.start),
        fetcher_(std::move(fetcher)),
        prefetcher_(feed, *fetcher_,
                    {.budget_bytes = options.prefetch_bytes,
                     .views_ahead = options.views_ahead,
                     .buffers = options.buffers},
                    options.start) {
    if (!group_.empty()) {
      reporter_ = std::make_unique<CursorReporter>(stream_, group_, options.start);
    }
  }

  Result<StepPtr> next(const CallOptions& call) {
    // A producer may wait for this position before it commits what is waited for here.
    if (const std::optional<Step> awaited = prefetcher_.awaited_commit()) report(*awaited);
    Result<StepPtr> step = prefetcher_.next(call);
    if (step.is(ErrorKind::kInvalid)) release_cursor(call);
    if (!step.is_ok() || *step == nullptr) return step;
    opened_cursor_ = false;
    const StepBatch& batch = **step;
    steps_.add();
    delivered_bytes_.add(batch.payload_bytes());
    move_to({.stream = stream_.uuid(),
             .next_step = batch.step + 1,
             .samples_hash = next_samples_hash(state().samples_hash, batch.samples_digest),
             .last = DeliveredStep{batch.step, batch.samples_digest}});
    if (distance(batch.step + 1, reported_) >= report_steps_) {
      report(batch.step + 1);
    } else if (reporter_ != nullptr) {
      reporter_->pass(batch.step + 1);
    }
    return step;
  }

  std::optional<TrainerView> take_view() { return prefetcher_.take_view(); }

  ConsumerState state() const {
    const MutexLock lock(mutex_);
    return position_;
  }

  Slot opened_with() const { return opened_with_; }
  const std::vector<Step>& skipped() const { return skipped_; }

  Status seek(const ConsumerState& state, const CallOptions& call) {
    BL_RETURN_IF_ERROR(stream_.runtime().check(call));
    if (state.stream != stream_.uuid()) {
      return Status::invalid(fmt::format("the state is of stream {}; this is stream {}",
                                         state.stream.to_string(), stream_.uuid().to_string()));
    }
    if (closing_) return Status::cancelled("the consumer was closed");
    if (state.last && state.last != this->state().last) {
      BL_ASSIGN_OR_RETURN(const HeadPtr head, feed_.refresh(call));
      BL_RETURN_IF_ERROR(check_delivered(stream_, head->head, *state.last, call));
    }
    const bool goes_back = state.next_step < this->state().next_step;
    if (reporter_ != nullptr && (goes_back || reporter_stopped_)) {
      // Whatever comes of it, reports are made again, and open a cursor that was closed.
      released_ = false;
      reporter_stopped_ = false;
      const Status kept = reporter_->go_back(state.next_step, call);
      if (!kept.is_ok()) {
        return kept.with_context(fmt::format("going back to step {}", state.next_step.value));
      }
      reported_ = state.next_step;
    }
    prefetcher_.seek(state.next_step);
    move_to(state);
    report(state.next_step);
    return Status::ok();
  }

  Status close(const CallOptions& call) {
    closing_ = true;
    prefetcher_.stop();
    if (reporter_ == nullptr) return Status::ok();
    reporter_->stop();
    // The last report may not have been made: producers count from it while nobody reads.
    const auto told = store::report_live_cursor(stream_, group_, state().next_step, call);
    if (!told.is_ok() && !told.is(ErrorKind::kConflict)) return told.status();  // Closed already.
    return store::close_live_cursor(stream_, group_, call);
  }

 private:
  void move_to(const ConsumerState& state) {
    const MutexLock lock(mutex_);
    position_ = state;
  }

  /// A job that cannot run the stream's first step holds up no producer, unless the group's cursor
  /// was open before: then an earlier run of it may still need what that keeps.
  void release_cursor(const CallOptions& call) {
    if (reporter_ == nullptr || !opened_cursor_ || released_) return;
    reporter_->stop();
    reporter_stopped_ = true;
    const Time patience_ends = stream_.runtime().now() + kReleaseTime;
    const Status closed = store::close_live_cursor(
        stream_, group_, {.deadline = std::min(call.deadline, patience_ends), .stop = call.stop});
    released_ = closed.is_ok();  // Else with the next call.
    if (!released_) {
      log_warning(
          fmt::format("group {}: its live cursor stays open, and producers may wait for "
                      "it: {}",
                      group_, closed.to_string()));
    }
  }

  void report(Step cursor) {
    if (cursor == reported_) return;
    reported_ = cursor;
    if (reporter_ != nullptr) reporter_->report(cursor);
  }

  HeadFeed& feed_;
  const store::Stream& stream_;
  const std::string group_;
  const std::uint32_t report_steps_;
  const Slot opened_with_;
  const std::vector<Step> skipped_;
  Counter& steps_;
  Counter& delivered_bytes_;

  mutable Mutex mutex_;
  ConsumerState position_ BL_GUARDED_BY(mutex_);

  bool closing_ = false;
  bool opened_cursor_;             // It was not open before, and nothing was delivered since.
  bool released_ = false;          // Closed by release_cursor().
  bool reporter_stopped_ = false;  // By release_cursor(), whether or not it was closed.
  Step reported_;
  std::unique_ptr<StepFetcher> fetcher_;
  Prefetcher prefetcher_;
  std::unique_ptr<CursorReporter> reporter_;
};

Result<std::unique_ptr<Consumer>> Consumer::open(HeadFeed& feed, const ConsumerOptions& options,
                                                 const CallOptions& call) {
  BL_RETURN_IF_ERROR(check_rank(options));
  BL_ASSIGN_OR_RETURN(HeadPtr newest, feed.refresh(call));
  if (newest->head.slot < options.min_slot) {
    BL_ASSIGN_OR_RETURN(newest, feed.wait_for_slot(options.min_slot, call));
  }
  BL_RETURN_IF_ERROR(check_start(newest->head, options));
  if (options.last) {
    BL_RETURN_IF_ERROR(check_delivered(feed.stream(), newest->head, *options.last, call));
  }
  BL_ASSIGN_OR_RETURN(const HeadPtr skips, head_of_skips(feed.stream(), options, newest, call));
  auto fetcher = make_fetcher(feed, options, skips->head);
  BL_RETURN_IF_ERROR(check_stream_suits(*fetcher, options, newest->head, call));
  bool opened_cursor = false;
  if (!options.report_group.empty()) {
    BL_ASSIGN_OR_RETURN(opened_cursor, open_cursor(feed.stream(), options, call));
  }
  auto impl = std::make_unique<Impl>(feed, options, skips->head, std::move(fetcher), opened_cursor);
  return std::unique_ptr<Consumer>(new Consumer(std::move(impl)));
}

Consumer::Consumer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Consumer::~Consumer() = default;

Result<StepPtr> Consumer::next(const CallOptions& call) {
  return impl_->next(call);
}

std::optional<TrainerView> Consumer::take_view() {
  return impl_->take_view();
}

Step Consumer::cursor() const {
  return impl_->state().next_step;
}

ConsumerState Consumer::state() const {
  return impl_->state();
}

Slot Consumer::opened_with() const {
  return impl_->opened_with();
}

const std::vector<Step>& Consumer::skipped() const {
  return impl_->skipped();
}

Status Consumer::seek(const ConsumerState& state, const CallOptions& call) {
  return impl_->seek(state, call);
}

Status Consumer::close(const CallOptions& call) {
  return impl_->close(call);
}

}  // namespace batchloom::client
