// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/ordered_appender.h"

#include <fmt/format.h>

#include <utility>

#include "batchloom/store/backoff.h"

namespace batchloom::store {
namespace {

std::uint64_t cost_bytes(const PendingBatch& batch) {
  return batch.size_bytes + batch.state_after.size() + batch.run_table.size();
}

// After these the same commit may still succeed, or has done so.
bool worth_repeating(const Status& error) {
  return is_transient(error) || error.is(ErrorKind::kUnknownOutcome);
}

}  // namespace

OrderedAppender::OrderedAppender(Runtime& runtime, ProducerSession& session,
                                 OrderedAppenderOptions options)
    : runtime_(runtime),
      session_(session),
      options_(std::move(options)),
      submitted_(runtime.make_event()),
      next_seq_(session.next_seq()),
      settled_(runtime.make_event()),
      committer_(
          runtime.spawn("committer", [this](const std::stop_token& stop) { commit_loop(stop); })) {}

OrderedAppender::~OrderedAppender() = default;

bool OrderedAppender::has_room(Seq seq, std::uint64_t bytes) const {
  return seq == next_seq_ || pending_bytes_ + bytes <= options_.pending_bytes_max;
}

Status OrderedAppender::submit(PendingBatch batch, const CallOptions& call) {
  const Seq seq = batch.seq;
  const std::uint64_t bytes = cost_bytes(batch);
  for (;;) {
    std::shared_ptr<Event> settled;
    {
      const MutexLock lock(mutex_);
      if (!failed_.is_ok()) return failed_;
      if (seq < next_seq_ || pending_.contains(seq)) {
        return Status::invalid(fmt::format("producer {}: batch {} was handed in before",
                                           session_.producer(), seq.value));
      }
      if (has_room(seq, bytes)) {
        pending_bytes_ += bytes;
        pending_.emplace(seq, std::move(batch));
        break;
      }
      settled = settled_;
    }
    BL_RETURN_IF_ERROR(settled->wait(call));
  }
  submitted_->set();
  return Status::ok();
}

Status OrderedAppender::flush(Seq end, const CallOptions& call) {
  for (;;) {
    std::shared_ptr<Event> settled;
    {
      const MutexLock lock(mutex_);
      if (!failed_.is_ok()) return failed_;
      if (next_seq_ >= end) return Status::ok();
      settled = settled_;
    }
    BL_RETURN_IF_ERROR(settled->wait(call));
  }
}

std::vector<PendingBatch> OrderedAppender::ready_prefix() {
  const MutexLock lock(mutex_);
  std::vector<PendingBatch> ready;
  Seq seq = next_seq_;
  for (auto it = pending_.begin(); it != pending_.end() && it->first == seq; ++it, ++seq)
    ready.push_back(it->second);
  if (ready.empty()) submitted_->reset();
  return ready;
}

void OrderedAppender::commit_loop(const std::stop_token& stop) {
  const CallOptions call{.deadline = kNever, .stop = stop};
  for (;;) {
    const std::vector<PendingBatch> ready = ready_prefix();
    if (ready.empty()) {
      if (!submitted_->wait(call).is_ok()) return;
      continue;
    }
    Backoff backoff(runtime_);
    Result<CommitReceipt> receipt = session_.commit(ready, call);
    while (!receipt.is_ok() && worth_repeating(receipt.status()) && backoff.wait(call).is_ok()) {
      receipt = session_.commit(ready, call);
    }
    if (receipt.is_ok() && options_.on_commit) options_.on_commit(ready, *receipt);
    settle(ready, receipt.status());
    if (receipt.is_ok()) continue;
    if (options_.on_failure && !receipt.is(ErrorKind::kCancelled)) {
      options_.on_failure(receipt.status());
    }
    return;
  }
}

void OrderedAppender::settle(std::span<const PendingBatch> batches, const Status& outcome) {
  std::shared_ptr<Event> settled = runtime_.make_event();
  {
    const MutexLock lock(mutex_);
    settled_.swap(settled);
    if (outcome.is_ok()) {
      for (const PendingBatch& batch : batches) {
        pending_bytes_ -= cost_bytes(batch);
        pending_.erase(batch.seq);
      }
      next_seq_ = batches.back().seq + 1;
    } else {
      failed_ = outcome;
    }
  }
  settled->set();
}

}  // namespace batchloom::store
