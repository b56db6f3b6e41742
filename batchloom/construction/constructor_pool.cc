// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/constructor_pool.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/log.h"
#include "batchloom/store/backoff.h"

namespace batchloom::construction {
namespace {

/// After these another attempt may succeed, or the one before may have done so.
bool worth_repeating(const Status& error) {
  return store::is_transient(error) || error.is(ErrorKind::kUnknownOutcome);
}

Time after(Time now, Duration time) {
  return time < kNever - now ? now + time : kNever;
}

/// The steps of a job, for messages.
std::string name_of(const ConstructionJob& job) {
  if (job.steps.empty()) return fmt::format("batch {}, without steps", job.seq.value);
  return fmt::format("batch {}, steps {} to {}", job.seq.value,
                     job.steps.front().planned.step.value, job.steps.back().planned.step.value);
}

/// A Backoff that begins anew after a success.
class Pauses {
 public:
  explicit Pauses(Runtime& runtime) : runtime_(runtime) {}

  void succeeded() { backoff_.reset(); }
  Status wait(const CallOptions& call) {
    if (!backoff_) backoff_.emplace(runtime_);
    return backoff_->wait(call);
  }

 private:
  Runtime& runtime_;
  std::optional<store::Backoff> backoff_;
};

}  // namespace

ConstructorPool::ConstructorPool(Runtime& runtime, std::span<Constructor* const> constructors,
                                 CommitBatches commit, ConstructorPoolOptions options)
    : runtime_(runtime),
      commit_(std::move(commit)),
      options_(options),
      constructors_(constructors.size()),
      state_(runtime, {.ledger = JobLedger(options.first, options.bytes_max),
                       .live = constructors.size(),
                       .closed = false,
                       .failed = {}}) {
  BL_CHECK(!constructors.empty(), "a pool has constructors");
  for (Constructor* constructor : constructors) {
    threads_.push_back(runtime.spawn(
        constructor->name(),
        [this, constructor](const std::stop_token& stop) { run_constructor(*constructor, stop); }));
  }
  threads_.push_back(
      runtime.spawn("committer", [this](const std::stop_token& stop) { run_committer(stop); }));
}

ConstructorPool::~ConstructorPool() {
  end_threads();
}

Status ConstructorPool::submit(ConstructionJob job, const CallOptions& call) {
  const store::Seq next = state_.read([](const State& state) { return state.ledger.end(); });
  if (job.seq != next) {
    return Status::invalid(
        fmt::format("{}: the pool's next batch is {}", name_of(job), next.value));
  }
  const std::uint64_t bytes = job.size_bytes();
  const auto shared = std::make_shared<const ConstructionJob>(std::move(job));
  const auto may_enter = [bytes](const State& state) {
    return state.closed || !state.failed.is_ok() || state.ledger.has_room(bytes);
  };
  BL_RETURN_IF_ERROR(state_.wait_until(may_enter, call));
  Status refused;
  state_.change([&](State& state) {
    refused = state.failed;
    if (state.closed) refused = Status::cancelled("the constructors were stopped");
    if (refused.is_ok()) state.ledger.add(shared);
  });
  return refused;
}

Status ConstructorPool::flush(const CallOptions& call) {
  const store::Seq end = state_.read([](const State& state) { return state.ledger.end(); });
  BL_RETURN_IF_ERROR(state_.wait_until(
      [end](const State& state) {
        return state.ledger.committed_end() >= end || !state.failed.is_ok();
      },
      call));
  return state_.read([end](const State& state) {
    return state.ledger.committed_end() >= end ? Status::ok() : state.failed;
  });
}

PoolEnd ConstructorPool::stop(const CallOptions& call) {
  state_.change([](State& state) { state.closed = true; });
  const Status flushed = flush(call);
  if (!flushed.is_ok()) fail(flushed);  // Before threads fail because they are stopped.
  end_threads();
  return state_.read([&](const State& state) {
    const JobLedger& ledger = state.ledger;
    const bool all = ledger.committed_end() == ledger.end();
    return PoolEnd{.committed_end = ledger.committed_end(),
                   .unknown_end = ledger.tried_end(),
                   .end = ledger.end(),
                   .reason = all ? Status::ok() : state.failed};
  });
}

std::uint64_t ConstructorPool::pending_bytes() const {
  return state_.read([](const State& state) { return state.ledger.bytes(); });
}

std::size_t ConstructorPool::live_constructors() const {
  return state_.read([](const State& state) { return state.live; });
}

void ConstructorPool::fail(const Status& error) {
  state_.change([&](State& state) {
    if (state.failed.is_ok()) state.failed = error;
  });
}

void ConstructorPool::end_threads() {
  for (const auto& thread : threads_) thread->request_stop();
  for (const auto& thread : threads_) thread->join();
}

JobPtr ConstructorPool::next_job(const CallOptions& call) {
  const auto to_do = [](const State& state) {
    return !state.failed.is_ok() || state.ledger.has_waiting();
  };
  JobPtr job;
  bool ended = false;
  while (job == nullptr && !ended) {  // Another constructor may be faster.
    if (!state_.wait_until(to_do, call).is_ok()) return nullptr;
    state_.change([&](State& state) {
      ended = !state.failed.is_ok();
      if (!ended && state.ledger.has_waiting()) job = state.ledger.take();
    });
  }
  return job;
}

void ConstructorPool::run_constructor(Constructor& constructor, const std::stop_token& stop) {
  const CallOptions call{.deadline = kNever, .stop = stop};
  Pauses pauses(runtime_);
  while (const JobPtr job = next_job(call)) {
    Result<store::PendingBatch> batch = constructor.construct(
        *job, {.deadline = after(runtime_.now(), options_.attempt_max), .stop = stop});
    if (batch.is_ok()) {
      pauses.succeeded();
      state_.change([&](State& state) { state.ledger.built(*job, *std::move(batch)); });
      continue;
    }
    const Status error = batch.status().with_context(name_of(*job));
    state_.change([&](State& state) { state.ledger.put_back(job); });
    if (stop.stop_requested()) return;
    if (error.is(ErrorKind::kCancelled)) return retire(constructor, error);
    if (!worth_repeating(error)) return fail(error);
    log_warning(fmt::format("constructor {} failed and another attempt will be made: {}",
                            constructor.name(), error.to_string()));
    if (!pauses.wait(call).is_ok()) return;
  }
}

void ConstructorPool::retire(const Constructor& constructor, const Status& error) {
  std::size_t left = 0;
  state_.change([&](State& state) {
    left = --state.live;
    if (left > 0 || !state.failed.is_ok()) return;
    state.failed = Status::unavailable(fmt::format(
        "all {} constructors are gone; the last of them: {}", constructors_, error.to_string()));
  });
  log_warning(fmt::format("constructor {} is gone, {} of {} are left: {}", constructor.name(), left,
                          constructors_, error.to_string()));
}

std::vector<store::PendingBatch> ConstructorPool::next_batches(const CallOptions& call) {
  const auto ready = [](const State& state) { return state.ledger.has_ready(); };
  std::vector<store::PendingBatch> batches;
  if (!state_.wait_until(ready, call).is_ok()) return batches;
  state_.change([&](State& state) { batches = state.ledger.ready(); });
  return batches;
}

void ConstructorPool::run_committer(const std::stop_token& stop) {
  const CallOptions call{.deadline = kNever, .stop = stop};
  Pauses pauses(runtime_);
  for (;;) {
    const std::vector<store::PendingBatch> batches = next_batches(call);
    if (batches.empty()) return;
    const Status committed = commit_(batches, call);
    if (committed.is_ok()) {
      pauses.succeeded();
      state_.change([&](State& state) { state.ledger.committed(batches.size()); });
      continue;
    }
    if (!worth_repeating(committed)) return fail(committed);
    log_warning(fmt::format("committing {} batches from {} on failed and will be repeated: {}",
                            batches.size(), batches.front().seq.value, committed.to_string()));
    if (!pauses.wait(call).is_ok()) return;
  }
}

}  // namespace batchloom::construction
