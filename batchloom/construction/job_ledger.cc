// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/job_ledger.h"

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::construction {

void JobLedger::add(JobPtr job) {
  BL_CHECK(job->seq == end_, "jobs come in order");
  bytes_ += job->size_bytes();
  ++end_;
  put_back(std::move(job));
}

JobPtr JobLedger::take() {
  JobPtr job = std::move(waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
  return job;
}

void JobLedger::put_back(JobPtr job) {
  const store::Seq seq = job->seq;
  waiting_.emplace(seq, std::move(job));
}

void JobLedger::built(const ConstructionJob& job, store::PendingBatch batch) {
  built_.emplace(job.seq, Built{std::move(batch), job.size_bytes()});
}

std::vector<store::PendingBatch> JobLedger::ready() {
  std::vector<store::PendingBatch> ready;
  store::Seq next = committed_end_;
  for (auto at = built_.begin(); at != built_.end() && at->first == next; ++at, ++next) {
    ready.push_back(at->second.batch);
  }
  tried_end_ = std::max(tried_end_, next);
  return ready;
}

void JobLedger::committed(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, ++committed_end_) {
    const auto at = built_.find(committed_end_);
    BL_CHECK(at != built_.end(), "only what was built is committed");
    bytes_ -= at->second.bytes;
    built_.erase(at);
  }
}

}  // namespace batchloom::construction
