// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/sim_lab_testing.h"

#include <gtest/gtest.h>

namespace batchloom::simulator {

using objstore::Fault;
using objstore::FaultPlan;
using objstore::FaultSettings;
using objstore::ObjectStore;
using objstore::Operation;
using objstore::PutCondition;
using objstore::PutReply;

SimLab::SimLab(std::uint64_t seed, const FaultSettings& faults)
    : world_(seed), store_(world_, FaultPlan::make(faults).value(), *this) {}

SimLab::SimLab(std::uint64_t seed, Fault fault, Operation operation)
    : SimLab(seed, FaultSettings{.seed = seed, .rates = {{fault, operation, 1.0}}}) {}

void SimLab::on_put(std::string_view key, const Bytes& bytes) {
  changes_.push_back(std::string(key) + "=" + std::string(as_text(bytes)));
}

void SimLab::on_remove(std::string_view key) {
  changes_.push_back(std::string(key) + " gone");
}

void SimLab::run(const std::vector<Body>& bodies) {
  for (const Body& body : bodies) {
    SimProcess& process = world_.add_process("p");
    clients_.push_back(store_.connect(process));
    process.start("main", [&body, &process, &client = *clients_.back()] { body(process, client); });
  }
  ASSERT_TRUE(world_.run().is_ok());
}

void SimLab::place(const std::string& key, std::string_view text) {
  store_.objects().apply_put(key, objstore::make_memory_object(to_bytes(text)),
                             PutCondition::none());
}

std::optional<std::string> SimLab::stored(std::string_view key) const {
  const auto* object = store_.objects().find(key);
  if (object == nullptr) return std::nullopt;
  return std::string(as_text(*object->bytes));
}

std::uint64_t SimLab::injected(Fault fault) const {
  return store_.injected()[objstore::index_of(fault)];
}

Result<PutReply> create(ObjectStore& client, std::string_view key, std::string_view text,
                        const CallOptions& call) {
  return put_bytes(client, key, as_bytes(text), PutCondition::absent(), call);
}

Result<PutReply> overwrite(ObjectStore& client, std::string_view key, std::string_view text,
                           const CallOptions& call) {
  return put_bytes(client, key, as_bytes(text), PutCondition::none(), call);
}

Result<std::vector<Status>> remove(ObjectStore& client, const std::vector<std::string>& keys) {
  return client.remove(keys, {});
}

}  // namespace batchloom::simulator
