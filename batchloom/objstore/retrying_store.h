// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batchloom/base/metrics.h"
#include "batchloom/objstore/object_store.h"
#include "batchloom/objstore/retrier.h"

namespace batchloom::objstore {

/// Passes calls on to another store and repeats those that end with `unavailable` and may be
/// repeated: get, head, list, remove (only the keys that failed) and unconditional put.
/// Thread-safe.
///
/// - A **conditional put is never repeated**: the second attempt could meet the first one's object
///   and report it as another's. Whoever commits or uploads knows what it wrote, and decides.
/// - `kUnknown` of an unconditional put is not repeated either: `kApplied` of a second attempt
///   would hide that the first may still arrive, after a later write or removal of the key.
/// - A get whose body does not have the bytes that the object's size and the range promise is
///   repeated; when the last attempt allowed ends so too, it is `corruption`.
/// - Removals that fail to the end come back as kFailed.
class RetryingStore final : public ObjectStore {
 public:
  /// All of `inner`, `runtime` and `counters` outlive it.
  RetryingStore(ObjectStore& inner, Runtime& runtime, Counters& counters,
                const RetryOptions& options = {});

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

  ObjectStore& inner_;
  Retrier retrier_;
};

}  // namespace batchloom::objstore
