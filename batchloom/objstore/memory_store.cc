// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/memory_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/content_etag.h"

namespace batchloom::objstore {
namespace {

bool holds(const PutCondition& condition, const MemoryObject* present) {
  if (condition.is_absent()) return present == nullptr;
  if (condition.is_matches()) return present != nullptr && present->etag == condition.etag();
  return true;
}

}  // namespace

MemoryObject make_memory_object(Bytes bytes) {
  ContentEtag tag;
  tag.add(bytes);
  return {.bytes = std::make_shared<const Bytes>(std::move(bytes)), .etag = tag.etag()};
}

Bytes concatenate(std::span<const ByteSpan> parts) {
  std::size_t size = 0;
  for (const ByteSpan part : parts) size += part.size();
  Bytes bytes;
  bytes.reserve(size);
  for (const ByteSpan part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Result<ObjectData> read_range(std::string_view key, const MemoryObject& object, ByteRange range,
                              Bytes storage) {
  const std::uint64_t size = object.bytes->size();
  if (range.offset > size) {
    return Status::invalid(fmt::format("get '{}': offset {} is beyond the object's {} bytes", key,
                                       range.offset, size));
  }
  const std::uint64_t length = std::min(range.length, size - range.offset);
  const auto part = ByteSpan(*object.bytes).subspan(range.offset, length);
  storage.assign(part.begin(), part.end());
  return ObjectData{.bytes = std::move(storage), .object_size_bytes = size, .etag = object.etag};
}

MemoryObjects::Place MemoryObjects::place_of(std::string_view key) {
  return {.mixed = xxh3_64(as_bytes(key)), .key = std::string(key)};
}

PutReply MemoryObjects::apply_put(std::string_view key, MemoryObject object,
                                  const PutCondition& condition) {
  if (!holds(condition, find(key))) {
    return {.outcome = PutOutcome::kConditionFailed, .etag = {}, .detail = {}};
  }
  PutReply reply{.outcome = PutOutcome::kApplied, .etag = object.etag, .detail = {}};
  objects_.insert_or_assign(place_of(key), std::move(object));
  return reply;
}

const MemoryObject* MemoryObjects::find(std::string_view key) const {
  const auto found = objects_.find(place_of(key));
  return found == objects_.end() ? nullptr : &found->second;
}

bool MemoryObjects::erase(std::string_view key) {
  return objects_.erase(place_of(key)) != 0;
}

std::vector<ListedObject> MemoryObjects::keys_with_prefix(const PageQuery& query) const {
  std::vector<ListedObject> page;
  auto next = query.last_shown.empty() ? objects_.begin()
                                       : objects_.upper_bound(place_of(query.last_shown));
  for (; next != objects_.end() && page.size() < query.limit; ++next) {
    const std::string& key = next->first.key;
    if (!key.starts_with(query.prefix) || key <= query.start_after) continue;
    page.push_back({.key = key, .size_bytes = next->second.bytes->size()});
  }
  return page;
}

class MemoryStore::Pages final : public Listing {
 public:
  Pages(MemoryStore& store, MemoryObjects::PageQuery query)
      : store_(store), query_(std::move(query)) {}

  Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
    BL_RETURN_IF_ERROR(store_.runtime_.check(call));
    const MutexLock lock(store_.mutex_);
    auto page = store_.objects_.keys_with_prefix(query_);
    if (!page.empty()) query_.last_shown = page.back().key;
    return page;
  }

 private:
  MemoryStore& store_;
  MemoryObjects::PageQuery query_;
};

MemoryStore::MemoryStore(Runtime& runtime, MemoryStoreOptions options)
    : runtime_(runtime), options_(options) {}

Status MemoryStore::check(std::string_view key, const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_key(key));
  return runtime_.check(call);
}

Result<std::optional<ObjectData>> MemoryStore::get(std::string_view key, ByteRange range,
                                                   const CallOptions& call) {
  return get_into({}, key, range, call);
}

Result<std::optional<ObjectData>> MemoryStore::get_into(Bytes storage, std::string_view key,
                                                        ByteRange range, const CallOptions& call) {
  BL_RETURN_IF_ERROR(check(key, call));
  MemoryObject object;
  {
    const MutexLock lock(mutex_);
    const MemoryObject* found = objects_.find(key);
    if (found == nullptr) return std::optional<ObjectData>();
    object = *found;
  }
  BL_ASSIGN_OR_RETURN(ObjectData data, read_range(key, object, range, std::move(storage)));
  return std::optional(std::move(data));
}

Result<std::optional<ObjectInfo>> MemoryStore::head(std::string_view key, const CallOptions& call) {
  BL_RETURN_IF_ERROR(check(key, call));
  const MutexLock lock(mutex_);
  const MemoryObject* found = objects_.find(key);
  if (found == nullptr) return std::optional<ObjectInfo>();
  return std::optional(ObjectInfo{.size_bytes = found->bytes->size()});
}

Result<PutReply> MemoryStore::put(std::string_view key, std::span<const ByteSpan> parts,
                                  const PutCondition& condition, const CallOptions& call) {
  BL_RETURN_IF_ERROR(check(key, call));
  MemoryObject object = make_memory_object(concatenate(parts));
  const MutexLock lock(mutex_);
  return objects_.apply_put(key, std::move(object), condition);
}

Result<std::unique_ptr<Listing>> MemoryStore::list(std::string_view prefix,
                                                   std::string_view start_after,
                                                   const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime_.check(call));
  MemoryObjects::PageQuery query{.prefix = std::string(prefix),
                                 .start_after = std::string(start_after),
                                 .last_shown = {},
                                 .limit = options_.page_size};
  return std::unique_ptr<Listing>(std::make_unique<Pages>(*this, std::move(query)));
}

Result<std::vector<Status>> MemoryStore::remove(std::span<const std::string> keys,
                                                const CallOptions& call) {
  for (const std::string& key : keys) BL_RETURN_IF_ERROR(validate_key(key));
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const MutexLock lock(mutex_);
  for (const std::string& key : keys) objects_.erase(key);
  return std::vector<Status>(keys.size());
}

Capabilities MemoryStore::capabilities() const {
  return {.conditional_create = true, .conditional_replace = true};
}

}  // namespace batchloom::objstore
