// SPDX-License-Identifier: Apache-2.0
// A store with a bad network in front of it, for tests and drills.
//
// What a caller sees of each fault (`surely not applied` is an error, `perhaps` is kUnknown):
//
//   fault             get, head, list     put                            remove
//   lost_request      unavailable         unknown, not applied           unavailable
//   lost_reply        unavailable         unknown, applied               unavailable, applied
//   late_apply        -                   unknown, applied later         unavailable, applied later
//   double_apply      -                   half the time the answer to a second try at once (so that
//                                         an own create looks like another's), else the first
//                                         answer and a second apply later; remove: later only
//   short_body        fewer bytes than object size and range promise: the caller can tell (get)
//   wrong_range       as many bytes, from elsewhere in the object: only checksums tell (get)
//   bit_flip          one wrong bit: only checksums tell (get)
//   conflict_409      -                   conflict, not applied          -
//   throttled_429     unavailable         unavailable, not applied       unavailable
//   server_error_503  unavailable         half the time `unavailable` and not applied, else unknown
//                                         and applied; remove: unavailable, applied or not
//   error_inside_ok   -                   unknown, applied or not        some keys failed, and stay
//
// A fault that has no meaning for a call (409 without a condition, a flipped bit of an empty body)
// leaves it alone and is not counted. Calls that the store would refuse anyhow meet no fault.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "batchloom/base/metrics.h"
#include "batchloom/objstore/faults.h"
#include "batchloom/objstore/late_calls.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// Passes calls on to another store, and lets some of them meet the faults of a plan. Late and
/// double applies happen on tasks of their own after the caller has its answer; when too many wait
/// (LateCalls::kMaxWaiting) they happen before the answer. Thread-safe.
class FaultyStore final : public ObjectStore {
 public:
  FaultyStore(ObjectStore& inner, Runtime& runtime, FaultPlan plan);
  /// Late applies that still wait happen now; blocks until they have.
  ~FaultyStore() override = default;

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override;
  Result<std::optional<ObjectInfo>> head(std::string_view key, const CallOptions& call) override;
  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override;
  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override;
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override;
  Capabilities capabilities() const override { return inner_.capabilities(); }

  /// How many calls have met `fault` so far.
  std::uint64_t injected(Fault fault) const { return injected_[index_of(fault)].value(); }

 private:
  class Pages;
  struct PutRequest;

  std::optional<FaultDecision> next_fault(Operation operation);
  void count(Fault fault) { injected_[index_of(fault)].add(); }
  Status failed(Fault fault, std::string_view request);
  std::optional<Status> fail_read(const std::optional<FaultDecision>& fault,
                                  std::string_view request);
  Result<bool> distort(const FaultDecision& fault, std::string_view key, ByteRange range,
                       ObjectData& data, const CallOptions& call);

  Result<PutReply> disturbed_put(const FaultDecision& fault, const PutRequest& request);
  Result<PutReply> pass_on(const PutRequest& request);
  PutReply unknown(Fault fault);
  void put_later(Duration delay, const PutRequest& request);

  Result<std::vector<Status>> disturbed_remove(const FaultDecision& fault,
                                               std::span<const std::string> keys,
                                               const CallOptions& call);
  Result<std::vector<Status>> remove_some(const FaultDecision& fault,
                                          std::span<const std::string> keys,
                                          const CallOptions& call);
  void remove_later(Duration delay, std::span<const std::string> keys);

  ObjectStore& inner_;
  Runtime& runtime_;
  const FaultPlan plan_;
  std::array<std::atomic<std::uint64_t>, kAllOperations.size()> calls_{};
  std::array<Counter, kAllFaults.size()> injected_{};
  LateCalls late_;  // Last: its calls use the members above.
};

}  // namespace batchloom::objstore
