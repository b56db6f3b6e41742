// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/retrying_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"

namespace batchloom::objstore {
namespace {

/// Ok, or what is wrong about the number of bytes.
Status check_length(std::string_view key, ByteRange range, const ObjectData& data) {
  const std::uint64_t size = data.object_size_bytes;
  const std::uint64_t expected = std::min(range.length, size - std::min(range.offset, size));
  if (data.bytes.size() == expected) return Status::ok();
  return Status::unavailable(
      fmt::format("get '{}': body of {} bytes, but offset {} of an object of {} bytes gives {}",
                  key, data.bytes.size(), range.offset, size, expected));
}

/// A removal under way: which keys are still to be removed.
class Removal {
 public:
  explicit Removal(std::span<const std::string> keys)
      : keys_(keys), replies_(keys.size(), Status::unavailable("not answered")) {
    for (std::size_t i = 0; i < keys.size(); ++i) open_.push_back(i);
  }

  /// Asks for the open keys. Ok when none is left to ask for again, `unavailable` while some are.
  Result<std::vector<Status>> attempt(ObjectStore& store, const CallOptions& call) {
    std::vector<std::string> asked;
    for (const std::size_t i : open_) asked.push_back(keys_[i]);
    answered_ = false;
    BL_ASSIGN_OR_RETURN(auto replies, store.remove(asked, call));
    BL_CHECK(replies.size() == asked.size(), "a store answers for each key that it was asked for");
    answered_ = true;
    for (std::size_t n = 0; n < open_.size(); ++n) replies_[open_[n]] = std::move(replies[n]);
    std::erase_if(open_,
                  [this](std::size_t i) { return !replies_[i].is(ErrorKind::kUnavailable); });
    if (open_.empty()) return replies_;
    return Status::unavailable(fmt::format("{} of {} keys were not removed, such as '{}': {}",
                                           open_.size(), keys_.size(), keys_[open_.front()],
                                           replies_[open_.front()].message()));
  }

  /// Whether the last attempt brought an answer for each key.
  bool answered() const { return answered_; }
  std::vector<Status> take_replies() { return std::move(replies_); }

 private:
  std::span<const std::string> keys_;
  std::vector<Status> replies_;
  std::vector<std::size_t> open_;  ///< Places in `keys_`.
  bool answered_ = false;
};

}  // namespace

RetryingStore::RetryingStore(ObjectStore& inner, Runtime& runtime, Counters& counters,
                             const RetryOptions& options)
    : inner_(inner), retrier_(runtime, counters, options) {}

Result<std::optional<ObjectData>> RetryingStore::get(std::string_view key, ByteRange range,
                                                     const CallOptions& call) {
  return get_into({}, key, range, call);
}

Result<std::optional<ObjectData>> RetryingStore::get_into(Bytes storage, std::string_view key,
                                                          ByteRange range,
                                                          const CallOptions& call) {
  int attempts = 0;
  Status damage;  // Of the last attempt.
  auto result = retrier_.run(call, [&]() -> Result<std::optional<ObjectData>> {
    ++attempts;
    damage = Status::ok();
    auto data = inner_.get_into(std::exchange(storage, {}), key, range, call);
    if (!data.is_ok() || !*data) return data;
    damage = check_length(key, range, **data);
    if (!damage.is_ok()) return damage;
    return data;
  });
  if (!damage.is_ok() && attempts == retrier_.max_attempts()) {
    return Status::corruption(
        fmt::format("{}, at the last of {} attempts", damage.message(), attempts));
  }
  return result;
}

Result<std::optional<ObjectInfo>> RetryingStore::head(std::string_view key,
                                                      const CallOptions& call) {
  return retrier_.run(call, [&] { return inner_.head(key, call); });
}

Result<PutReply> RetryingStore::put(std::string_view key, std::span<const ByteSpan> parts,
                                    const PutCondition& condition, const CallOptions& call) {
  if (!condition.is_none()) return inner_.put(key, parts, condition, call);
  return retrier_.run(call, [&] { return inner_.put(key, parts, condition, call); });
}

class RetryingStore::Pages final : public Listing {
 public:
  Pages(RetryingStore& store, std::unique_ptr<Listing> inner)
      : store_(store), inner_(std::move(inner)) {}

  Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
    return store_.retrier_.run(call, [&] { return inner_->next_page(call); });
  }

 private:
  RetryingStore& store_;
  std::unique_ptr<Listing> inner_;
};

Result<std::unique_ptr<Listing>> RetryingStore::list(std::string_view prefix,
                                                     std::string_view start_after,
                                                     const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto inner,
                      retrier_.run(call, [&] { return inner_.list(prefix, start_after, call); }));
  return std::unique_ptr<Listing>(std::make_unique<Pages>(*this, std::move(inner)));
}

Result<std::vector<Status>> RetryingStore::remove(std::span<const std::string> keys,
                                                  const CallOptions& call) {
  Removal removal(keys);
  auto result = retrier_.run(call, [&] { return removal.attempt(inner_, call); });
  if (result.is(ErrorKind::kUnavailable) && removal.answered()) return removal.take_replies();
  return result;
}

}  // namespace batchloom::objstore
