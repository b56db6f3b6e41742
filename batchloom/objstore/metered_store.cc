// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/metered_store.h"

#include <fmt/format.h>

#include <utility>

namespace batchloom::objstore {

MeteredStore::Calls MeteredStore::calls_of(Operation operation, Counters& counters) {
  const auto counter = [&](std::string_view what) -> Counter& {
    return counters.counter(fmt::format("objstore_{}_{}", to_string(operation), what));
  };
  return {.calls = counter("calls"),
          .errors = counter("errors"),
          .unavailable = counter("unavailable")};
}

MeteredStore::MeteredStore(ObjectStore& inner, Counters& counters)
    : inner_(inner),
      calls_{calls_of(Operation::kGet, counters), calls_of(Operation::kHead, counters),
             calls_of(Operation::kPut, counters), calls_of(Operation::kList, counters),
             calls_of(Operation::kRemove, counters)},
      get_bytes_(counters.counter("objstore_get_bytes")),
      get_missing_(counters.counter("objstore_get_missing")),
      head_missing_(counters.counter("objstore_head_missing")),
      put_bytes_(counters.counter("objstore_put_bytes")),
      put_applied_(counters.counter("objstore_put_applied")),
      put_condition_failed_(counters.counter("objstore_put_condition_failed")),
      put_unknown_(counters.counter("objstore_put_unknown")),
      list_keys_(counters.counter("objstore_list_keys")),
      remove_keys_(counters.counter("objstore_remove_keys")),
      remove_failed_(counters.counter("objstore_remove_failed")) {}

void MeteredStore::count(Operation operation, const Status& status) {
  const Calls& calls = calls_[index_of(operation)];
  calls.calls.add();
  if (status.is_ok()) return;
  calls.errors.add();
  if (status.is(ErrorKind::kUnavailable)) calls.unavailable.add();
}

Result<std::optional<ObjectData>> MeteredStore::get(std::string_view key, ByteRange range,
                                                    const CallOptions& call) {
  auto data = inner_.get(key, range, call);
  count_get(data);
  return data;
}

Result<std::optional<ObjectData>> MeteredStore::get_into(Bytes storage, std::string_view key,
                                                         ByteRange range, const CallOptions& call) {
  auto data = inner_.get_into(std::move(storage), key, range, call);
  count_get(data);
  return data;
}

void MeteredStore::count_get(const Result<std::optional<ObjectData>>& data) {
  count(Operation::kGet, data.status());
  if (!data.is_ok()) return;
  if (*data) {
    get_bytes_.add((*data)->bytes.size());
  } else {
    get_missing_.add();
  }
}

Result<std::optional<ObjectInfo>> MeteredStore::head(std::string_view key,
                                                     const CallOptions& call) {
  auto info = inner_.head(key, call);
  count(Operation::kHead, info.status());
  if (info.is_ok() && !*info) head_missing_.add();
  return info;
}

Result<PutReply> MeteredStore::put(std::string_view key, std::span<const ByteSpan> parts,
                                   const PutCondition& condition, const CallOptions& call) {
  for (const ByteSpan part : parts) put_bytes_.add(part.size());
  auto reply = inner_.put(key, parts, condition, call);
  count(Operation::kPut, reply.status());
  if (!reply.is_ok()) return reply;
  switch (reply->outcome) {
    case PutOutcome::kApplied: put_applied_.add(); break;
    case PutOutcome::kConditionFailed: put_condition_failed_.add(); break;
    case PutOutcome::kUnknown: put_unknown_.add(); break;
  }
  return reply;
}

class MeteredStore::Pages final : public Listing {
 public:
  Pages(MeteredStore& store, std::unique_ptr<Listing> inner)
      : store_(store), inner_(std::move(inner)) {}

  Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
    auto page = inner_->next_page(call);
    store_.count(Operation::kList, page.status());
    if (page.is_ok()) store_.list_keys_.add(page->size());
    return page;
  }

 private:
  MeteredStore& store_;
  std::unique_ptr<Listing> inner_;
};

Result<std::unique_ptr<Listing>> MeteredStore::list(std::string_view prefix,
                                                    std::string_view start_after,
                                                    const CallOptions& call) {
  auto inner = inner_.list(prefix, start_after, call);
  if (!inner.is_ok()) {
    count(Operation::kList, inner.status());
    return inner;
  }
  return std::unique_ptr<Listing>(std::make_unique<Pages>(*this, std::move(inner).value()));
}

Result<std::vector<Status>> MeteredStore::remove(std::span<const std::string> keys,
                                                 const CallOptions& call) {
  remove_keys_.add(keys.size());
  auto replies = inner_.remove(keys, call);
  count(Operation::kRemove, replies.status());
  if (!replies.is_ok()) return replies;
  for (const Status& removed : *replies) {
    if (!removed.is_ok()) remove_failed_.add();
  }
  return replies;
}

}  // namespace batchloom::objstore
