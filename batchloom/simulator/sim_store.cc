// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/sim_store.h"

#include "batchloom/base/hash.h"
#include "batchloom/simulator/sim_client.h"

namespace batchloom::simulator {

using objstore::FaultCall;
using objstore::FaultDecision;
using objstore::PutOutcome;

std::unique_ptr<objstore::ObjectStore> SimStore::connect(SimProcess& process) {
  return std::make_unique<SimClient>(*this, world_, process);
}

std::optional<FaultDecision> SimStore::next_fault(objstore::Operation operation) {
  const FaultCall call{.operation = operation, .ordinal = calls_[objstore::index_of(operation)]++};
  if (healed_) return std::nullopt;
  const std::optional<FaultDecision> fault = plan_.decide(call);
  if (fault) faulted_calls_.push_back(call);
  return fault;
}

void SimStore::trace(objstore::Operation operation, std::string_view key, std::uint64_t detail) {
  world_.trace(xxh3_64(as_bytes(key)) + mix64(detail) + objstore::index_of(operation));
}

objstore::PutReply SimStore::apply_put(const std::string& key, const objstore::MemoryObject& object,
                                       const objstore::PutCondition& condition) {
  objstore::PutReply reply = objects_.apply_put(key, object, condition);
  trace(objstore::Operation::kPut, key, static_cast<std::uint64_t>(reply.outcome));
  if (reply.outcome == PutOutcome::kApplied) observer_.on_put(key, *object.bytes);
  return reply;
}

void SimStore::apply_remove(const std::string& key) {
  const bool existed = objects_.erase(key);
  trace(objstore::Operation::kRemove, key, existed ? 1 : 0);
  if (existed) observer_.on_remove(key);
}

}  // namespace batchloom::simulator
