// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/faulty_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/objstore/memory_store.h"

namespace batchloom::objstore {

/// A put's arguments, borrowed.
struct FaultyStore::PutRequest {
  std::string_view key;
  std::span<const ByteSpan> parts;
  const PutCondition& condition;
  const CallOptions& call;
};

FaultyStore::FaultyStore(ObjectStore& inner, Runtime& runtime, FaultPlan plan)
    : inner_(inner), runtime_(runtime), plan_(std::move(plan)), late_(runtime) {}

std::optional<FaultDecision> FaultyStore::next_fault(Operation operation) {
  const std::uint64_t ordinal = calls_[index_of(operation)].fetch_add(1);
  return plan_.decide({.operation = operation, .ordinal = ordinal});
}

Status FaultyStore::failed(Fault fault, std::string_view request) {
  count(fault);
  return Status::unavailable(fmt::format("{}: injected {}", request, to_string(fault)));
}

std::optional<Status> FaultyStore::fail_read(const std::optional<FaultDecision>& fault,
                                             std::string_view request) {
  if (!fault) return std::nullopt;
  switch (fault->fault) {
    case Fault::kLostRequest:
    case Fault::kLostReply:
    case Fault::kThrottled429:
    case Fault::kServerError503: return failed(fault->fault, request);
    default: return std::nullopt;
  }
}

Result<std::optional<ObjectData>> FaultyStore::get(std::string_view key, ByteRange range,
                                                   const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_key(key));
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const auto fault = next_fault(Operation::kGet);
  if (auto failure = fail_read(fault, fmt::format("get '{}'", key))) return *failure;
  BL_ASSIGN_OR_RETURN(auto data, inner_.get(key, range, call));
  if (fault && data) {
    BL_ASSIGN_OR_RETURN(const bool distorted, distort(*fault, key, range, *data, call));
    if (distorted) count(fault->fault);
  }
  return data;
}

Result<bool> FaultyStore::distort(const FaultDecision& fault, std::string_view key, ByteRange range,
                                  ObjectData& data, const CallOptions& call) {
  const std::uint64_t size = data.bytes.size();
  if (size == 0) return false;
  switch (fault.fault) {
    case Fault::kShortBody: data.bytes.resize(fault.salt % size); return true;
    case Fault::kBitFlip:
      data.bytes[(fault.salt >> 3) % size] ^= std::byte{1} << (fault.salt & 7);
      return true;
    case Fault::kWrongRange: {
      // Any other offset at which as many bytes lie.
      const std::uint64_t offsets = data.object_size_bytes - size + 1;
      if (offsets == 1) return false;
      range.offset = (range.offset + 1 + fault.salt % (offsets - 1)) % offsets;
      range.length = size;
      BL_ASSIGN_OR_RETURN(auto other, inner_.get(key, range, call));
      if (!other) return false;
      data.bytes = std::move(other->bytes);
      return true;
    }
    default: return false;
  }
}

Result<std::optional<ObjectInfo>> FaultyStore::head(std::string_view key, const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_key(key));
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const auto fault = next_fault(Operation::kHead);
  if (auto failure = fail_read(fault, fmt::format("head '{}'", key))) return *failure;
  return inner_.head(key, call);
}

Result<PutReply> FaultyStore::put(std::string_view key, std::span<const ByteSpan> parts,
                                  const PutCondition& condition, const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_key(key));
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const PutRequest request{.key = key, .parts = parts, .condition = condition, .call = call};
  const auto fault = next_fault(Operation::kPut);
  return fault ? disturbed_put(*fault, request) : pass_on(request);
}

Result<PutReply> FaultyStore::pass_on(const PutRequest& request) {
  return inner_.put(request.key, request.parts, request.condition, request.call);
}

PutReply FaultyStore::unknown(Fault fault) {
  count(fault);
  return {.outcome = PutOutcome::kUnknown,
          .etag = {},
          .detail = fmt::format("injected {}", to_string(fault))};
}

Result<PutReply> FaultyStore::disturbed_put(const FaultDecision& fault, const PutRequest& request) {
  const bool either = (fault.salt & 1) != 0;
  switch (fault.fault) {
    case Fault::kLostRequest: return unknown(fault.fault);
    case Fault::kLostReply:
      static_cast<void>(pass_on(request));  // Whatever it answered, nobody hears it.
      return unknown(fault.fault);
    case Fault::kLateApply: put_later(fault.delay, request); return unknown(fault.fault);
    case Fault::kDoubleApply: {
      count(fault.fault);
      auto first = pass_on(request);
      if (either) return pass_on(request);
      put_later(fault.delay, request);
      return first;
    }
    case Fault::kConflict409:
      if (request.condition.is_none()) return pass_on(request);
      count(fault.fault);
      return Status::conflict(fmt::format("put '{}': injected conflict_409", request.key));
    case Fault::kThrottled429: return failed(fault.fault, fmt::format("put '{}'", request.key));
    case Fault::kServerError503:
      if (!either) return failed(fault.fault, fmt::format("put '{}'", request.key));
      static_cast<void>(pass_on(request));
      return unknown(fault.fault);
    case Fault::kErrorInsideOk:
      if (either) static_cast<void>(pass_on(request));
      return unknown(fault.fault);
    default: return pass_on(request);
  }
}

void FaultyStore::put_later(Duration delay, const PutRequest& request) {
  const auto apply = [this, key = std::string(request.key), bytes = concatenate(request.parts),
                      condition = request.condition] {
    static_cast<void>(put_bytes(inner_, key, bytes, condition, {}));
  };
  if (!late_.start(delay, apply)) apply();
}

class FaultyStore::Pages final : public Listing {
 public:
  Pages(FaultyStore& store, std::unique_ptr<Listing> inner)
      : store_(store), inner_(std::move(inner)) {}

  Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
    BL_RETURN_IF_ERROR(store_.runtime_.check(call));
    const auto fault = store_.next_fault(Operation::kList);
    if (auto failure = store_.fail_read(fault, "list")) return *failure;
    return inner_->next_page(call);
  }

 private:
  FaultyStore& store_;
  std::unique_ptr<Listing> inner_;
};

Result<std::unique_ptr<Listing>> FaultyStore::list(std::string_view prefix,
                                                   std::string_view start_after,
                                                   const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(auto inner, inner_.list(prefix, start_after, call));
  return std::unique_ptr<Listing>(std::make_unique<Pages>(*this, std::move(inner)));
}

Result<std::vector<Status>> FaultyStore::remove(std::span<const std::string> keys,
                                                const CallOptions& call) {
  for (const std::string& key : keys) BL_RETURN_IF_ERROR(validate_key(key));
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const auto fault = next_fault(Operation::kRemove);
  return fault ? disturbed_remove(*fault, keys, call) : inner_.remove(keys, call);
}

Result<std::vector<Status>> FaultyStore::disturbed_remove(const FaultDecision& fault,
                                                          std::span<const std::string> keys,
                                                          const CallOptions& call) {
  const auto request = fmt::format("remove of {} keys", keys.size());
  switch (fault.fault) {
    case Fault::kLostRequest:
    case Fault::kThrottled429: return failed(fault.fault, request);
    case Fault::kLostReply:
      static_cast<void>(inner_.remove(keys, call));
      return failed(fault.fault, request);
    case Fault::kServerError503:
      if ((fault.salt & 1) != 0) static_cast<void>(inner_.remove(keys, call));
      return failed(fault.fault, request);
    case Fault::kLateApply: remove_later(fault.delay, keys); return failed(fault.fault, request);
    case Fault::kDoubleApply: {
      count(fault.fault);
      auto replies = inner_.remove(keys, call);
      remove_later(fault.delay, keys);
      return replies;
    }
    case Fault::kErrorInsideOk: return remove_some(fault, keys, call);
    default: return inner_.remove(keys, call);
  }
}

Result<std::vector<Status>> FaultyStore::remove_some(const FaultDecision& fault,
                                                     std::span<const std::string> keys,
                                                     const CallOptions& call) {
  if (keys.empty()) return inner_.remove(keys, call);
  // Every second key fails, and at least one.
  const std::uint64_t first = fault.salt % keys.size();
  std::vector<std::string> asked;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 2 == first % 2) continue;
    asked.push_back(keys[i]);
    places.push_back(i);
  }
  std::vector<Status> replies(keys.size(), Status::unavailable("injected error_inside_ok"));
  count(fault.fault);
  if (asked.empty()) return replies;
  BL_ASSIGN_OR_RETURN(auto answered, inner_.remove(asked, call));
  for (std::size_t i = 0; i < answered.size(); ++i) replies[places[i]] = std::move(answered[i]);
  return replies;
}

void FaultyStore::remove_later(Duration delay, std::span<const std::string> keys) {
  const auto apply = [this, copy = std::vector(keys.begin(), keys.end())] {
    static_cast<void>(inner_.remove(copy, {}));
  };
  if (!late_.start(delay, apply)) apply();
}

}  // namespace batchloom::objstore
