// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "batchloom/base/metrics.h"
#include "batchloom/objstore/object_store.h"
#include "batchloom/objstore/operation.h"

namespace batchloom::objstore {

/// Passes calls on to another store and counts them. Thread-safe. Blocks as that store does.
///
/// Counters, with `<op>` one of get, head, put, list, remove (a page of a listing is one list):
///   objstore_<op>_calls, objstore_<op>_errors (any error), objstore_<op>_unavailable (those among
///   them that ask for a pause), objstore_get_bytes, objstore_put_bytes (offered, whatever came of
///   it), objstore_get_missing, objstore_head_missing, objstore_put_applied,
///   objstore_put_condition_failed, objstore_put_unknown, objstore_list_keys (shown),
///   objstore_remove_keys (asked for), objstore_remove_failed (keys).
class MeteredStore final : public ObjectStore {
 public:
  /// `inner` and `counters` outlive it.
  MeteredStore(ObjectStore& inner, Counters& counters);

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override;
  Result<std::optional<ObjectData>> get_into(Bytes storage, std::string_view key, ByteRange range,
                                             const CallOptions& call) override;
  Result<std::optional<ObjectInfo>> head(std::string_view key, const CallOptions& call) override;
  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override;
  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override;
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override;
  Capabilities capabilities() const override { return inner_.capabilities(); }

 private:
  class Pages;

  struct Calls {
    Counter& calls;
    Counter& errors;
    Counter& unavailable;
  };
  static Calls calls_of(Operation operation, Counters& counters);
  void count(Operation operation, const Status& status);
  void count_get(const Result<std::optional<ObjectData>>& data);

  ObjectStore& inner_;
  std::array<Calls, kAllOperations.size()> calls_;
  Counter& get_bytes_;
  Counter& get_missing_;
  Counter& head_missing_;
  Counter& put_bytes_;
  Counter& put_applied_;
  Counter& put_condition_failed_;
  Counter& put_unknown_;
  Counter& list_keys_;
  Counter& remove_keys_;
  Counter& remove_failed_;
};

}  // namespace batchloom::objstore
