// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"

namespace batchloom::objstore {

std::string_view to_string(PutOutcome outcome) {
  switch (outcome) {
    case PutOutcome::kApplied: return "applied";
    case PutOutcome::kConditionFailed: return "condition_failed";
    case PutOutcome::kUnknown: return "unknown";
  }
  BL_CHECK(false, "not an outcome");
}

Bytes random_bytes(std::size_t size_bytes, std::uint64_t seed) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  Bytes bytes((size_bytes + kWord - 1) / kWord * kWord);
  for (std::size_t i = 0; i < bytes.size(); i += kWord) {
    store_le(mix64(seed + i), bytes.data() + i);
  }
  bytes.resize(size_bytes);
  return bytes;
}

CheckRun::CheckRun(ObjectStore& store, Runtime& runtime, std::string prefix, CallOptions call)
    : store_(store), runtime_(runtime), prefix_(std::move(prefix)), call_(std::move(call)) {}

std::string CheckRun::key(std::string_view name) {
  std::string full = fmt::format("{}{}", prefix_, name);
  keys_.insert(full);
  return full;
}

std::vector<std::string> CheckRun::keys(std::initializer_list<std::string_view> names) {
  std::vector<std::string> keys;
  for (const std::string_view name : names) keys.push_back(key(name));
  return keys;
}

void CheckRun::fail(std::string what) {
  failures_.push_back(std::move(what));
}

void CheckRun::expect(bool holds, std::string_view what_is_wrong) {
  if (!holds) fail(std::string(what_is_wrong));
}

void CheckRun::note_error(const Status& error) {
  const bool says_nothing = error.is(ErrorKind::kUnavailable) || error.is(ErrorKind::kCancelled) ||
                            error.is(ErrorKind::kExhausted);
  if (!says_nothing) return fail(error.to_string());
  if (interruption_.is_ok()) interruption_ = error;
}

std::optional<Etag> CheckRun::put(const std::string& key, ByteSpan bytes,
                                  const PutCondition& condition, PutOutcome wanted) {
  auto reply = put_bytes(store_, key, bytes, condition, call_);
  if (!reply.is_ok()) {
    note_error(reply.status());
    return std::nullopt;
  }
  if (reply->outcome != wanted) {
    fail(fmt::format("put '{}' ended as {}, not {}", key, to_string(reply->outcome),
                     to_string(wanted)));
  }
  const bool applied = reply->outcome == PutOutcome::kApplied;
  if (applied && !reply->etag) fail(fmt::format("put '{}' was applied without an etag", key));
  return applied ? reply->etag : std::nullopt;
}

std::optional<ObjectData> CheckRun::get(const std::string& key, ByteRange range) {
  auto data = store_.get(key, range, call_);
  if (data.is_ok()) return std::move(data).value();
  note_error(data.status());
  return std::nullopt;
}

void CheckRun::expect_content(const std::string& key, ByteSpan bytes) {
  const auto data = get(key);
  if (!data) return fail(fmt::format("'{}' is missing or cannot be read", key));
  if (!std::ranges::equal(data->bytes, bytes)) {
    fail(fmt::format("'{}' holds {} bytes that differ from the {} bytes written", key,
                     data->bytes.size(), bytes.size()));
  }
  if (data->object_size_bytes != bytes.size()) {
    fail(fmt::format("'{}' is said to have {} bytes, not {}", key, data->object_size_bytes,
                     bytes.size()));
  }
  expect(data->etag.has_value(), fmt::format("get of all of '{}' gave no etag", key));
  if (bytes.empty()) return;  // Of a stretch of nothing, S3 says that it is beyond the end.
  const auto covered = get(key, {.length = bytes.size()});
  expect(covered && covered->etag == data->etag,
         fmt::format("get of the {} bytes of '{}' gave another etag, or none", bytes.size(), key));
}

void CheckRun::expect_missing(const std::string& key) {
  if (get(key)) fail(fmt::format("'{}' exists, and should not", key));
}

std::map<std::string, std::uint64_t> CheckRun::list(std::string_view prefix,
                                                    std::string_view start_after) {
  std::map<std::string, std::uint64_t> shown;
  auto listing = store_.list(prefix, start_after, call_);
  if (!listing.is_ok()) {
    note_error(listing.status());
    return shown;
  }
  for (;;) {
    const auto page = (*listing)->next_page(call_);
    if (!page.is_ok()) {
      note_error(page.status());
      return shown;
    }
    if (page->empty()) return shown;
    for (const ListedObject& object : *page) {
      const bool is_new = shown.emplace(object.key, object.size_bytes).second;
      if (!is_new) fail(fmt::format("list '{}' shows '{}' twice", prefix, object.key));
    }
  }
}

void CheckRun::expect_list(std::string_view prefix, std::string_view start_after,
                           const std::set<std::string>& keys) {
  const auto shown = list(prefix, start_after);
  for (const std::string& key : keys) {
    if (!shown.contains(key)) {
      fail(fmt::format("list '{}' after '{}' misses '{}'", prefix, start_after, key));
    }
  }
  for (const auto& [key, size] : shown) {
    if (!keys.contains(key)) {
      fail(fmt::format("list '{}' after '{}' shows '{}', which should not be there", prefix,
                       start_after, key));
    }
  }
}

void CheckRun::remove(const std::vector<std::string>& keys) {
  const auto replies = store_.remove(keys, call_);
  if (!replies.is_ok()) return note_error(replies.status());
  if (replies->size() != keys.size()) {
    return fail(fmt::format("remove of {} keys gave {} replies", keys.size(), replies->size()));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (const Status& removed = (*replies)[i]; !removed.is_ok()) {
      fail(fmt::format("'{}' was not removed: {}", keys[i], removed.to_string()));
    }
  }
}

std::vector<std::string> CheckRun::remove_all(const CallOptions& call) {
  std::vector<std::string> left(keys_.begin(), keys_.end());
  const auto replies = store_.remove(left, call);
  if (!replies.is_ok() || replies->size() != left.size()) return left;
  std::vector<std::string> failed;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!(*replies)[i].is_ok()) failed.push_back(std::move(left[i]));
  }
  return failed;
}

}  // namespace batchloom::objstore
