// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/simulator/sim_store.h"

namespace batchloom::simulator {

/// One process's connection to a SimStore. Used by that process's threads only.
class SimClient final : public objstore::ObjectStore {
 public:
  SimClient(SimStore& store, SimWorld& world, SimProcess& process)
      : store_(store), world_(world), process_(process) {}

  Result<std::optional<objstore::ObjectData>> get(std::string_view key, objstore::ByteRange range,
                                                  const CallOptions& call) override;
  Result<std::optional<objstore::ObjectInfo>> head(std::string_view key,
                                                   const CallOptions& call) override;
  Result<objstore::PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                                 const objstore::PutCondition& condition,
                                 const CallOptions& call) override;
  Result<std::unique_ptr<objstore::Listing>> list(std::string_view prefix,
                                                  std::string_view start_after,
                                                  const CallOptions& call) override;
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override;
  objstore::Capabilities capabilities() const override { return {true, true}; }

 private:
  class Pages;

  /// A request that reads the bucket.
  struct Read {
    objstore::Operation operation;
    std::string key;
    std::optional<objstore::FaultDecision> fault;
  };
  /// Issues it, looks at the bucket by `look` when it takes effect, and waits for the reply. Ok,
  /// the fault's error, or why the wait ended. `look` returns a hash of what it saw.
  Status read(const Read& request, const CallOptions& call, std::function<std::uint64_t()> look);
  /// `effect` happens long after the request was issued.
  void apply_late(const objstore::FaultDecision& fault, std::function<void()> effect);
  void distort(const objstore::FaultDecision& fault, const objstore::MemoryObject& object,
               objstore::ByteRange range, objstore::ObjectData& data);

  SimStore& store_;
  SimWorld& world_;
  SimProcess& process_;
};

}  // namespace batchloom::simulator
