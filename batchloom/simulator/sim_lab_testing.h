// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/simulator/sim_store.h"

namespace batchloom::simulator {

/// A bucket, processes that use it, and all that it goes through.
class SimLab final : public BucketObserver {
 public:
  using Body = std::function<void(SimProcess&, objstore::ObjectStore&)>;

  explicit SimLab(std::uint64_t seed, const objstore::FaultSettings& faults = {});
  /// Every call of `operation` meets `fault`.
  SimLab(std::uint64_t seed, objstore::Fault fault, objstore::Operation operation);

  void on_put(std::string_view key, const Bytes& bytes) override;
  void on_remove(std::string_view key) override;

  /// Runs each of `bodies` as a process with a client, until nothing happens any more.
  void run(const std::vector<Body>& bodies);

  /// Puts without a client.
  void place(const std::string& key, std::string_view text);
  std::optional<std::string> stored(std::string_view key) const;
  std::uint64_t injected(objstore::Fault fault) const;
  /// "key=text" and "key gone", in order.
  const std::vector<std::string>& changes() const { return changes_; }

  SimWorld& world() { return world_; }
  SimStore& store() { return store_; }

 private:
  std::vector<std::unique_ptr<objstore::ObjectStore>> clients_;
  SimWorld world_;
  SimStore store_;
  std::vector<std::string> changes_;
};

/// Puts that want the key to be absent, and that want nothing.
Result<objstore::PutReply> create(objstore::ObjectStore& client, std::string_view key,
                                  std::string_view text, const CallOptions& call = {});
Result<objstore::PutReply> overwrite(objstore::ObjectStore& client, std::string_view key,
                                     std::string_view text, const CallOptions& call = {});
Result<std::vector<Status>> remove(objstore::ObjectStore& client,
                                   const std::vector<std::string>& keys);

}  // namespace batchloom::simulator
