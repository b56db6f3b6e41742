// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/scripted_store_testing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/memory_store.h"

namespace batchloom::store {
namespace {

using objstore::ObjectData;
using objstore::ObjectInfo;
using objstore::Operation;
using objstore::PutReply;

// What the caller hears of a request that took no effect; nullopt where it takes one.
std::optional<Status> refusal(Answer answer, const std::string& key) {
  switch (answer) {
    case Answer::kPass:
    case Answer::kLostReply:
    case Answer::kDamaged: return std::nullopt;
    case Answer::kConflict: return Status::conflict(key + ": scripted: another put is under way");
    case Answer::kForbidden: return Status::invalid(key + ": scripted: no permission");
    case Answer::kDiskFull: return Status::exhausted(key + ": scripted: the disk is full");
    case Answer::kLostRequest:
    case Answer::kUnavailable: return Status::unavailable(key + ": scripted: no answer");
  }
  return std::nullopt;
}

void damage(std::optional<ObjectData>& data) {
  if (data && !data->bytes.empty()) data->bytes[data->bytes.size() / 2] ^= std::byte{1};
}
void damage(std::vector<Status>& replies) {
  if (!replies.empty()) replies[0] = Status::unavailable("scripted");
}
template <class T>
void damage(T&) {}

}  // namespace

std::size_t ScriptedStore::count(Operation operation, std::string_view prefix) const {
  return static_cast<std::size_t>(std::ranges::count_if(requests_, [&](const Request& request) {
    return request.operation == operation && request.key.starts_with(prefix);
  }));
}

ScriptLine ScriptedStore::take_line(const Request& request) {
  const std::size_t number = requests_.size();
  requests_.push_back(request);
  if (before_each_) before_each_(number);
  const auto fits = std::ranges::find_if(script_, [&](const ScriptLine& line) {
    return line.operation == request.operation && request.key.starts_with(line.prefix);
  });
  if (fits == script_.end()) {
    return {.answer = number == answered_number_ ? answer_to_number_ : Answer::kPass};
  }
  ScriptLine line = *fits;
  if (--fits->times == 0) script_.erase(fits);
  return line;
}

template <class T>
Result<T> ScriptedStore::play(const Request& request, const std::function<Result<T>()>& pass) {
  const std::string& key = request.key;
  const ScriptLine line = take_line(request);
  if (line.before) line.before();
  const std::optional<Status> refused = refusal(line.answer, key);
  Result<T> result = refused ? Result<T>(*refused) : pass();
  if (line.after) line.after();
  if (line.answer == Answer::kDamaged && result.is_ok()) damage(*result);
  const bool lost = line.answer == Answer::kLostReply || line.answer == Answer::kLostRequest;
  if constexpr (std::is_same_v<T, PutReply>) {
    if (lost) return PutReply{.etag = {}, .detail = "scripted"};
  }
  if (lost) return Status::unavailable(key + ": scripted: the reply was lost");
  return result;
}

Result<std::optional<ObjectData>> ScriptedStore::get(std::string_view key,
                                                     objstore::ByteRange range,
                                                     const CallOptions& call) {
  return play<std::optional<ObjectData>>({Operation::kGet, std::string(key)},
                                         [&] { return inner_.get(key, range, call); });
}

Result<std::optional<ObjectInfo>> ScriptedStore::head(std::string_view key,
                                                      const CallOptions& call) {
  return play<std::optional<ObjectInfo>>({Operation::kHead, std::string(key)},
                                         [&] { return inner_.head(key, call); });
}

Result<PutReply> ScriptedStore::put(std::string_view key, std::span<const ByteSpan> parts,
                                    const objstore::PutCondition& condition,
                                    const CallOptions& call) {
  const std::uint64_t content = xxh3_64(objstore::concatenate(parts));
  return play<PutReply>({Operation::kPut, std::string(key), content},
                        [&] { return inner_.put(key, parts, condition, call); });
}

Result<std::unique_ptr<objstore::Listing>> ScriptedStore::list(std::string_view prefix,
                                                               std::string_view start_after,
                                                               const CallOptions& call) {
  return play<std::unique_ptr<objstore::Listing>>({Operation::kList, std::string(prefix)}, [&] {
    return inner_.list(prefix, start_after, call);
  });
}

Result<std::vector<Status>> ScriptedStore::remove(std::span<const std::string> keys,
                                                  const CallOptions& call) {
  const std::string first = keys.empty() ? std::string() : keys.front();
  return play<std::vector<Status>>({Operation::kRemove, first},
                                   [&] { return inner_.remove(keys, call); });
}

}  // namespace batchloom::store
