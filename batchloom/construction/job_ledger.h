// SPDX-License-Identifier: Apache-2.0
// Where every job of a ConstructorPool stands. Bookkeeping alone: no thread, no wait.
//
//   handed in -> waiting -> with a constructor -> built -> committed
//                   ^______________|  an attempt failed
//
//  1. Jobs come in the order of their sequence numbers, and go in it.
//  2. Their bytes count from their coming until they are committed. A job that is larger than the
//     bound comes in alone.
//  3. The job with the lowest number is always inside, and is the first to be given to a
//     constructor; so what waits for it cannot wait for ever.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "batchloom/construction/constructor.h"

namespace batchloom::construction {

using JobPtr = std::shared_ptr<const ConstructionJob>;

/// One thread at a time.
class JobLedger {
 public:
  JobLedger(store::Seq first, std::uint64_t bytes_max)
      : bytes_max_(bytes_max), committed_end_(first), tried_end_(first), end_(first) {}

  /// The number that the next job must have.
  store::Seq end() const { return end_; }
  /// All below are committed.
  store::Seq committed_end() const { return committed_end_; }
  /// A commit was tried of all below.
  store::Seq tried_end() const { return tried_end_; }
  std::uint64_t bytes() const { return bytes_; }

  bool has_room(std::uint64_t bytes) const {
    return bytes_ == 0 || (bytes_ <= bytes_max_ && bytes <= bytes_max_ - bytes_);
  }
  /// Precondition: job->seq is end().
  void add(JobPtr job);

  bool has_waiting() const { return !waiting_.empty(); }
  /// The lowest one goes to a constructor. Precondition: has_waiting().
  JobPtr take();
  /// An attempt failed.
  void put_back(JobPtr job);
  /// An attempt succeeded. The payload may go now.
  void built(const ConstructionJob& job, store::PendingBatch batch);

  bool has_ready() const { return built_.contains(committed_end_); }
  /// All that can be committed now, in order; from now on they were tried. Empty: none.
  std::vector<store::PendingBatch> ready();
  /// Precondition: the first `count` of ready().
  void committed(std::size_t count);

 private:
  struct Built {
    store::PendingBatch batch;
    std::uint64_t bytes = 0;  ///< Of its job.
  };

  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  store::Seq committed_end_;
  store::Seq tried_end_;
  store::Seq end_;
  std::map<store::Seq, JobPtr> waiting_;
  std::map<store::Seq, Built> built_;
};

}  // namespace batchloom::construction
