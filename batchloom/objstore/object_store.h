// SPDX-License-Identifier: Apache-2.0
// The one interface to object storage: what the batch store asks of a bucket.
//
// Assumed of every backend, and tested by conformance_testing.h: operations on one key are
// linearizable; a conditional put has at most one winner, whatever races; a listing that starts
// after a put was acknowledged shows it. A failed condition and a missing key are values. A listing
// is a set: nobody may rely on its order.
//
// The outcome of a put has three values, and that is the heart of it. A reply can be lost after the
// write was applied, so `kUnknown` means "may have happened, or may yet happen"; only an error
// Status means "surely never applied". `kConditionFailed` means "the key is taken, possibly by an
// earlier attempt of mine".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"

namespace batchloom::objstore {

/// A stretch of an object. The default is the whole object.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = UINT64_MAX;

  bool covers(std::uint64_t size_bytes) const { return offset == 0 && length >= size_bytes; }
};

/// An opaque name of an object's content, for `PutCondition::matches`. Equal content may have equal
/// tags.
struct Etag {
  std::string value;
  friend bool operator==(const Etag&, const Etag&) = default;
};

struct ObjectData {
  Bytes bytes = {};                     ///< The requested range, cut at the object's end.
  std::uint64_t object_size_bytes = 0;  ///< Of the whole object.
  std::optional<Etag> etag = {};        ///< Always present where the range covers the object.
};

struct ObjectInfo {
  std::uint64_t size_bytes = 0;
};

/// When a put may take effect.
class PutCondition {
 public:
  /// Always; replaces what is there.
  static PutCondition none() { return PutCondition(Kind::kNone, {}); }
  /// Only if the key does not exist.
  static PutCondition absent() { return PutCondition(Kind::kAbsent, {}); }
  /// Only if the key exists with this tag.
  static PutCondition matches(Etag etag) { return PutCondition(Kind::kMatches, std::move(etag)); }

  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_absent() const { return kind_ == Kind::kAbsent; }
  bool is_matches() const { return kind_ == Kind::kMatches; }
  /// Precondition: is_matches().
  const Etag& etag() const { return etag_; }

 private:
  enum class Kind : std::uint8_t { kNone, kAbsent, kMatches };
  PutCondition(Kind kind, Etag etag) : kind_(kind), etag_(std::move(etag)) {}

  Kind kind_;
  Etag etag_;
};

enum class PutOutcome : std::uint8_t {
  kApplied,          ///< The object is there, durably, with the bytes given.
  kConditionFailed,  ///< The condition did not hold when the store looked; possibly because of my
                     ///< own earlier attempt.
  kUnknown,          ///< May have been applied, or may still be applied later.
};

/// What is replaced by PutCondition::matches is small.
inline constexpr std::uint64_t kPutEtagMaxBytes = std::uint64_t{64} << 10;

struct PutReply {
  PutOutcome outcome = PutOutcome::kUnknown;
  /// Present with kApplied, unless the object is larger than kPutEtagMaxBytes: then it may be.
  std::optional<Etag> etag = {};
  std::string detail = {};  ///< With kUnknown: what happened, for messages.
};

struct ListedObject {
  std::string key;
  std::uint64_t size_bytes = 0;
};

/// A listing under way. One thread at a time. Must not outlive its store.
class Listing {
 public:
  virtual ~Listing() = default;
  /// The next page; empty at the end. Keys are in no order, and none is given twice unless it was
  /// removed and put again meanwhile. Objects put or removed after the listing began may or may not
  /// be shown; a key that is there throughout is shown, even if its object is replaced meanwhile
  /// (trimming relies on it).
  virtual Result<std::vector<ListedObject>> next_page(const CallOptions& call) = 0;
};

struct Capabilities {
  bool conditional_create = false;   ///< PutCondition::absent()
  bool conditional_replace = false;  ///< PutCondition::matches()
};

/// A bucket, or a folder of one. Thread-safe. Every call can block.
///
/// Errors of every call: `invalid` (bad key, missing permission, range beyond the end),
/// `unavailable` (retry later; a passed deadline), `exhausted` (disk or quota full), `cancelled`,
/// `corruption` (the reply contradicts the request, or something that is no object has the key). A
/// put's error means that it was surely not applied, with `conflict` meaning that another
/// conditional put of the same key was under way and neither is decided by this answer.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /// The object's bytes, or nullopt where the key does not exist. An offset at the end gives no
  /// bytes; one beyond it is `invalid`.
  virtual Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                                const CallOptions& call) = 0;

  /// The same, with the bytes in the memory of `storage` where the backend can: for readers of one
  /// size again and again, since memory fresh from the kernel costs a fault a page.
  virtual Result<std::optional<ObjectData>> get_into(Bytes storage, std::string_view key,
                                                     ByteRange range, const CallOptions& call) {
    storage = Bytes();  // By value for backends that take it; here it only goes.
    return get(key, range, call);
  }

  /// The object's size, or nullopt where the key does not exist.
  virtual Result<std::optional<ObjectInfo>> head(std::string_view key, const CallOptions& call) = 0;

  /// Writes the concatenation of `parts` as one object: all of it or nothing. `parts` are borrowed
  /// for the call only.
  virtual Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                               const PutCondition& condition, const CallOptions& call) = 0;

  /// Lists all keys that begin with `prefix` and come after `start_after` in byte order (all if
  /// empty).
  virtual Result<std::unique_ptr<Listing>> list(std::string_view prefix,
                                                std::string_view start_after,
                                                const CallOptions& call) = 0;

  /// Removes keys; a missing key counts as removed. One answer per key, in the order asked: ok
  /// where it is gone, else why it may still be there. An error means that some keys may have been
  /// removed.
  virtual Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                             const CallOptions& call) = 0;

  virtual Capabilities capabilities() const = 0;
};

/// Ok, or `invalid`: keys are 1 to 1,000 bytes of [A-Za-z0-9._-] in non-empty segments joined by
/// '/', and no segment begins with a dot (backends keep their own files there). A key must not also
/// be a folder of another key.
Status validate_key(std::string_view key);

/// put() of one contiguous buffer.
inline Result<PutReply> put_bytes(ObjectStore& store, std::string_view key, ByteSpan bytes,
                                  const PutCondition& condition, const CallOptions& call) {
  return store.put(key, std::span(&bytes, 1), condition, call);
}

}  // namespace batchloom::objstore
