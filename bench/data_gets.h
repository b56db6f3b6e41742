// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/object_store.h"
#include "batchloom/store/keys.h"

namespace batchloom {

/// Passes every call on, and counts the bytes that gets of batch objects (and states) bring.
/// Thread-safe.
class DataGets final : public objstore::ObjectStore {
 public:
  /// `inner` outlives it.
  explicit DataGets(objstore::ObjectStore& inner) : inner_(inner) {}

  std::uint64_t bytes() const { return bytes_; }

  Result<std::optional<objstore::ObjectData>> get(std::string_view key, objstore::ByteRange range,
                                                  const CallOptions& call) override {
    auto data = inner_.get(key, range, call);
    const bool counts = key.starts_with(store::kDataPrefix) && data.is_ok() && *data;
    if (counts) bytes_ += (**data).bytes.size();
    return data;
  }
  Result<std::optional<objstore::ObjectInfo>> head(std::string_view key,
                                                   const CallOptions& call) override {
    return inner_.head(key, call);
  }
  Result<objstore::PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                                 const objstore::PutCondition& condition,
                                 const CallOptions& call) override {
    return inner_.put(key, parts, condition, call);
  }
  Result<std::unique_ptr<objstore::Listing>> list(std::string_view prefix,
                                                  std::string_view start_after,
                                                  const CallOptions& call) override {
    return inner_.list(prefix, start_after, call);
  }
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override {
    return inner_.remove(keys, call);
  }
  objstore::Capabilities capabilities() const override { return inner_.capabilities(); }

 private:
  objstore::ObjectStore& inner_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace batchloom
