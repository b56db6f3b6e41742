// SPDX-License-Identifier: Apache-2.0
// What a SimClient asks of the bucket without changing it.
#include <fmt/format.h>

#include "batchloom/base/hash.h"
#include "batchloom/simulator/sim_client.h"

namespace batchloom::simulator {

using objstore::FaultDecision;
using objstore::ListedObject;
using objstore::MemoryObject;
using objstore::ObjectData;
using objstore::ObjectInfo;
using objstore::Operation;
using FaultKind = objstore::Fault;

namespace {

constexpr std::size_t kPageSize = 5;

bool ends_read(FaultKind fault) {
  return fault == FaultKind::kLostRequest || fault == FaultKind::kLostReply ||
         fault == FaultKind::kThrottled429 || fault == FaultKind::kServerError503;
}

// As many bytes as were asked for, from elsewhere in the object; past its end it begins again.
void shift_range(const Bytes& object, std::uint64_t begin, Bytes& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = object[(begin + i) % object.size()];
}

}  // namespace

Status SimClient::read(const Read& request, const CallOptions& call,
                       std::function<std::uint64_t()> look) {
  const std::shared_ptr<Event> replied = process_.make_event();
  store_.trace(request.operation, request.key, ~std::uint64_t{0});
  if (request.fault && ends_read(request.fault->fault)) {
    store_.count(request.fault->fault);
    world_.post([replied] { replied->set(); });
    BL_RETURN_IF_ERROR(replied->wait(call));
    return Status::unavailable(fmt::format("{} {}: injected {}", to_string(request.operation),
                                           request.key, to_string(request.fault->fault)));
  }
  world_.post(
      [this, replied, operation = request.operation, key = request.key, effect = std::move(look)] {
        store_.trace(operation, key, effect());
        world_.post([replied] { replied->set(); });
      });
  return replied->wait(call);
}

Result<std::optional<ObjectData>> SimClient::get(std::string_view key, objstore::ByteRange range,
                                                 const CallOptions& call) {
  BL_RETURN_IF_ERROR(process_.check(call));
  const Read request{Operation::kGet, std::string(key), store_.next_fault(Operation::kGet)};
  auto object = std::make_shared<std::optional<MemoryObject>>();
  BL_RETURN_IF_ERROR(read(request, call, [this, object, name = request.key]() -> std::uint64_t {
    const MemoryObject* found = store_.objects_.find(name);
    if (found == nullptr) return 0;
    *object = *found;
    return xxh3_64(as_bytes(found->etag.value));
  }));
  if (!*object) return std::optional<ObjectData>();
  BL_ASSIGN_OR_RETURN(ObjectData data, read_range(key, **object, range));
  if (request.fault) distort(*request.fault, **object, range, data);
  return std::optional(std::move(data));
}

void SimClient::distort(const FaultDecision& fault, const MemoryObject& object,
                        objstore::ByteRange range, ObjectData& data) {
  const std::size_t size = data.bytes.size();
  if (size == 0) return;
  const Bytes whole = data.bytes;
  switch (fault.fault) {
    case FaultKind::kShortBody: data.bytes.resize(fault.salt % size); break;
    case FaultKind::kBitFlip:
      data.bytes[fault.salt / 8 % size] ^= static_cast<std::byte>(1U << (fault.salt % 8));
      break;
    case FaultKind::kWrongRange:
      shift_range(*object.bytes, range.offset + 1 + fault.salt % object.bytes->size(), data.bytes);
      break;
    default: return;
  }
  if (data.bytes != whole) store_.count(fault.fault);
}

Result<std::optional<ObjectInfo>> SimClient::head(std::string_view key, const CallOptions& call) {
  BL_RETURN_IF_ERROR(process_.check(call));
  const Read request{Operation::kHead, std::string(key), store_.next_fault(Operation::kHead)};
  auto info = std::make_shared<std::optional<ObjectInfo>>();
  BL_RETURN_IF_ERROR(read(request, call, [this, info, name = request.key]() -> std::uint64_t {
    const MemoryObject* found = store_.objects_.find(name);
    if (found == nullptr) return 0;
    *info = ObjectInfo{found->bytes->size()};
    return 1 + (*info)->size_bytes;
  }));
  return *info;
}

/// Asks for one page at a time, so that the bucket changes in between.
class SimClient::Pages final : public objstore::Listing {
 public:
  Pages(SimClient& client, std::string prefix, std::string start_after) : client_(client) {
    query_ = {.prefix = std::move(prefix),
              .start_after = std::move(start_after),
              .last_shown = {},
              .limit = kPageSize};
  }

  Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
    auto page = std::make_shared<std::vector<ListedObject>>();
    if (ended_) return *page;
    BL_RETURN_IF_ERROR(client_.process_.check(call));
    const Read request{Operation::kList, query_.prefix,
                       client_.store_.next_fault(Operation::kList)};
    BL_RETURN_IF_ERROR(
        client_.read(request, call,
                     [objects = &client_.store_.objects_, page, query = query_]() -> std::uint64_t {
                       *page = objects->keys_with_prefix(query);
                       std::uint64_t seen = page->size();
                       for (const ListedObject& object : *page)
                         seen = mix64(seen ^ xxh3_64(as_bytes(object.key)));
                       return seen;
                     }));
    ended_ = page->size() < kPageSize;
    if (!page->empty()) query_.last_shown = page->back().key;
    return *page;
  }

 private:
  SimClient& client_;
  objstore::MemoryObjects::PageQuery query_;
  bool ended_ = false;
};

Result<std::unique_ptr<objstore::Listing>> SimClient::list(std::string_view prefix,
                                                           std::string_view start_after,
                                                           const CallOptions& call) {
  BL_RETURN_IF_ERROR(process_.check(call));
  return std::unique_ptr<objstore::Listing>(
      std::make_unique<Pages>(*this, std::string(prefix), std::string(start_after)));
}

}  // namespace batchloom::simulator
