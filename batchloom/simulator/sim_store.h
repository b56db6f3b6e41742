// SPDX-License-Identifier: Apache-2.0
// An object store in a simulated world: a bucket, and a network to it that loses, delays and
// repeats.
//
// A request has three events: it is issued (the client's call begins), it takes effect on the
// bucket, and its reply comes back. Each is a pick of the world, so anything may happen in between,
// and a request outlives the client that issued it. Faults of one FaultPlan apply to all clients
// together.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "batchloom/base/sim_runtime.h"
#include "batchloom/objstore/faults.h"
#include "batchloom/objstore/memory_store.h"

namespace batchloom::simulator {

/// Sees every change of the bucket at the moment it takes effect.
class BucketObserver {
 public:
  virtual ~BucketObserver() = default;
  virtual void on_put(std::string_view key, const Bytes& bytes) = 0;
  virtual void on_remove(std::string_view key) = 0;
};

/// The network and the bucket. Owned by the simulation; only the baton's holder may call it.
class SimStore {
 public:
  SimStore(SimWorld& world, objstore::FaultPlan plan, BucketObserver& observer)
      : world_(world), plan_(std::move(plan)), observer_(observer) {}

  /// This store as `process` sees it. The process and the store must outlive it.
  std::unique_ptr<objstore::ObjectStore> connect(SimProcess& process);

  /// From now on requests meet no faults.
  void heal() { healed_ = true; }

  objstore::MemoryObjects& objects() { return objects_; }
  const objstore::MemoryObjects& objects() const { return objects_; }

  /// How often each fault happened, by objstore::index_of().
  const std::array<std::uint64_t, objstore::kAllFaults.size()>& injected() const {
    return injected_;
  }
  /// The calls that met one, in order; what a shrinker takes away one by one.
  const std::vector<objstore::FaultCall>& faulted_calls() const { return faulted_calls_; }

 private:
  friend class SimClient;

  /// Counts a call of `operation` and decides its fault.
  std::optional<objstore::FaultDecision> next_fault(objstore::Operation operation);
  /// An event of a request, for the trace: `detail` is a hash of its body or its outcome.
  void trace(objstore::Operation operation, std::string_view key, std::uint64_t detail);
  void count(objstore::Fault fault) { ++injected_[objstore::index_of(fault)]; }
  objstore::PutReply apply_put(const std::string& key, const objstore::MemoryObject& object,
                               const objstore::PutCondition& condition);
  void apply_remove(const std::string& key);

  SimWorld& world_;
  objstore::FaultPlan plan_;
  BucketObserver& observer_;
  objstore::MemoryObjects objects_;
  bool healed_ = false;
  std::array<std::uint64_t, objstore::kAllOperations.size()> calls_{};
  std::array<std::uint64_t, objstore::kAllFaults.size()> injected_{};
  std::vector<objstore::FaultCall> faulted_calls_;
};

}  // namespace batchloom::simulator
