// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// Passes every call on to `inner`, which outlives it. For tests to override what they want wrong.
/// Thread-safe.
class ForwardingStore : public ObjectStore {
 public:
  explicit ForwardingStore(ObjectStore& inner) : inner_(inner) {}

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override {
    return inner_.get(key, range, call);
  }
  Result<std::optional<ObjectInfo>> head(std::string_view key, const CallOptions& call) override {
    return inner_.head(key, call);
  }
  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override {
    return inner_.put(key, parts, condition, call);
  }
  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override {
    return inner_.list(prefix, start_after, call);
  }
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override {
    return inner_.remove(keys, call);
  }
  Capabilities capabilities() const override { return inner_.capabilities(); }

 protected:
  ObjectStore& inner_;
};

}  // namespace batchloom::objstore
