// SPDX-License-Identifier: Apache-2.0
// Objects in memory: the store of unit tests, and the state behind the simulator's store.
//
// Objects lie in a map ordered by (hash of the key, key). A listing walks that map, and remembers
// the last key it showed. A key's place never changes, so a listing that goes on beneath concurrent
// puts and removes shows no key twice and misses none that was there all along; and nobody can come
// to rely on a sorted order.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// An object's content and the tag that names it. Immutable; cheap to copy.
struct MemoryObject {
  std::shared_ptr<const Bytes> bytes;
  Etag etag;  ///< A hash of the content: equal content has equal tags.
};

/// `bytes` as an object; hashes them.
MemoryObject make_memory_object(Bytes bytes);

/// The concatenation of `parts`.
Bytes concatenate(std::span<const ByteSpan> parts);

/// What a get of `range` answers: the bytes, cut at the object's end; none for a range that begins
/// there. `invalid` for one that begins beyond it. `key` is for the message.
Result<ObjectData> read_range(std::string_view key, const MemoryObject& object, ByteRange range,
                              Bytes storage = {});

/// A bucket without locks, time or failures: every call takes effect at once. One thread at a time.
class MemoryObjects {
 public:
  /// kApplied with the object's tag, or kConditionFailed and nothing changed.
  PutReply apply_put(std::string_view key, MemoryObject object, const PutCondition& condition);

  /// The object, or null where the key does not exist. Valid until the next change.
  const MemoryObject* find(std::string_view key) const;

  /// Removes the object; false where the key did not exist.
  bool erase(std::string_view key);

  /// Which part of the bucket a page covers.
  struct PageQuery {
    std::string prefix;
    std::string start_after;  ///< Only keys above this one in byte order.
    std::string last_shown;   ///< The last key of the page before this one; empty for the first.
    std::size_t limit = 1000;
  };
  /// The next `limit` keys with the prefix, in a fixed but mixed order; fewer only at the end. Time
  /// is linear in the number of all objects.
  std::vector<ListedObject> keys_with_prefix(const PageQuery& query) const;

  std::size_t size() const { return objects_.size(); }

 private:
  struct Place {
    std::uint64_t mixed = 0;
    std::string key;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  static Place place_of(std::string_view key);

  std::map<Place, MemoryObject> objects_;
};

struct MemoryStoreOptions {
  std::size_t page_size = 1000;  ///< Keys in a page of a listing; small ones let tests cross pages.
};

/// A bucket in memory, for tests. Linearizable; never answers `kUnknown`. Never waits, but honours
/// deadlines and stop tokens that have passed when a call begins. Thread-safe.
class MemoryStore final : public ObjectStore {
 public:
  explicit MemoryStore(Runtime& runtime, MemoryStoreOptions options = {});

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override;
  Result<std::optional<ObjectData>> get_into(Bytes storage, std::string_view key, ByteRange range,
                                             const CallOptions& call) override;
  Result<std::optional<ObjectInfo>> head(std::string_view key, const CallOptions& call) override;
  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override;
  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override;
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override;
  Capabilities capabilities() const override;

 private:
  class Pages;
  Status check(std::string_view key, const CallOptions& call);

  Runtime& runtime_;
  const MemoryStoreOptions options_;
  Mutex mutex_;
  MemoryObjects objects_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::objstore
