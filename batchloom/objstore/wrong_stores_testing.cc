// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/wrong_stores_testing.h"

#include <map>
#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/base/mutex.h"
#include "batchloom/objstore/forwarding_store_testing.h"

namespace batchloom::objstore {
namespace {

class IgnoresConditions final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& /*condition*/, const CallOptions& call) override {
    return inner_.put(key, parts, PutCondition::none(), call);
  }
};

/// Looks whether the key is free, and writes a moment later. The moment lasts until a second
/// creator of the key is there, so that a race is lost for sure.
class SeveralWinners final : public ForwardingStore {
 public:
  SeveralWinners(ObjectStore& inner, Runtime& runtime)
      : ForwardingStore(inner), runtime_(runtime) {}

  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override {
    if (!condition.is_absent()) return inner_.put(key, parts, condition, call);
    BL_ASSIGN_OR_RETURN(const auto present, inner_.head(key, call));
    if (present) return PutReply{.outcome = PutOutcome::kConditionFailed, .etag = {}, .detail = {}};
    const std::shared_ptr<Event> second = enter(std::string(key));
    static_cast<void>(second->wait({.deadline = runtime_.now() + kMoment, .stop = call.stop}));
    return inner_.put(key, parts, PutCondition::none(), call);
  }

 private:
  static constexpr Duration kMoment = std::chrono::milliseconds(40);

  /// An event that is set once two creators of `key` have entered.
  std::shared_ptr<Event> enter(std::string key) {
    std::shared_ptr<Event> fresh = runtime_.make_event();
    std::shared_ptr<Event> waiting;
    {
      const MutexLock lock(mutex_);
      const auto [place, first] = creators_.emplace(std::move(key), fresh);
      if (first) return fresh;
      waiting = place->second;
    }
    waiting->set();
    return waiting;
  }

  Runtime& runtime_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Event>> creators_ BL_GUARDED_BY(mutex_);
};

class WrongRange final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override {
    BL_ASSIGN_OR_RETURN(auto data, inner_.get(key, range, call));
    if (!data || range.offset == 0) return data;
    return inner_.get(key, {.offset = 0, .length = data->bytes.size()}, call);
  }
};

class ListMissesFresh final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override {
    auto reply = inner_.put(key, parts, condition, call);
    const MutexLock lock(mutex_);
    freshest_ = key;
    return reply;
  }

  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override {
    BL_ASSIGN_OR_RETURN(auto inner, inner_.list(prefix, start_after, call));
    const MutexLock lock(mutex_);
    return std::unique_ptr<Listing>(std::make_unique<Pages>(std::move(inner), freshest_));
  }

 private:
  class Pages final : public Listing {
   public:
    Pages(std::unique_ptr<Listing> inner, std::string hidden)
        : inner_(std::move(inner)), hidden_(std::move(hidden)) {}

    Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
      for (;;) {
        BL_ASSIGN_OR_RETURN(auto page, inner_->next_page(call));
        const bool at_end = page.empty();
        std::erase_if(page, [this](const ListedObject& object) { return object.key == hidden_; });
        if (at_end || !page.empty()) return page;
      }
    }

   private:
    std::unique_ptr<Listing> inner_;
    const std::string hidden_;
  };

  Mutex mutex_;
  std::string freshest_ BL_GUARDED_BY(mutex_);
};

class ListLosesReplaced final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override {
    auto reply = inner_.put(key, parts, condition, call);
    const MutexLock lock(mutex_);
    last_put_.insert_or_assign(std::string(key), ++puts_);
    return reply;
  }

  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override {
    BL_ASSIGN_OR_RETURN(auto inner, inner_.list(prefix, start_after, call));
    const MutexLock lock(mutex_);
    return std::unique_ptr<Listing>(std::make_unique<OldPages>(std::move(inner), *this, puts_));
  }

 private:
  bool was_put_since(const std::string& key, std::uint64_t puts) {
    const MutexLock lock(mutex_);
    const auto found = last_put_.find(key);
    return found != last_put_.end() && found->second > puts;
  }

  class OldPages final : public Listing {
   public:
    OldPages(std::unique_ptr<Listing> inner, ListLosesReplaced& store, std::uint64_t puts)
        : inner_(std::move(inner)), store_(store), puts_(puts) {}

    Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
      for (;;) {
        BL_ASSIGN_OR_RETURN(auto page, inner_->next_page(call));
        const bool at_end = page.empty();
        std::erase_if(page, [this](const ListedObject& object) {
          return store_.was_put_since(object.key, puts_);
        });
        if (at_end || !page.empty()) return page;
      }
    }

   private:
    std::unique_ptr<Listing> inner_;
    ListLosesReplaced& store_;
    const std::uint64_t puts_;
  };

  Mutex mutex_;
  std::uint64_t puts_ BL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::uint64_t> last_put_ BL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<ObjectStore> make_wrong_store(Defect defect, ObjectStore& inner, Runtime& runtime) {
  switch (defect) {
    case Defect::kIgnoresConditions: return std::make_unique<IgnoresConditions>(inner);
    case Defect::kSeveralWinners: return std::make_unique<SeveralWinners>(inner, runtime);
    case Defect::kWrongRange: return std::make_unique<WrongRange>(inner);
    case Defect::kListMissesFresh: return std::make_unique<ListMissesFresh>(inner);
    case Defect::kListLosesReplaced: return std::make_unique<ListLosesReplaced>(inner);
  }
  BL_CHECK(false, "not a defect");
}

}  // namespace batchloom::objstore
