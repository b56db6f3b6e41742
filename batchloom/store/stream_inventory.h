// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "batchloom/store/keys.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// What a listing of a stream shows, sorted by kind, and which of it was claimed since: what nobody
/// claims is an orphan. 40 bytes an object, whatever its key, and as many again while it grows. One
/// thread at a time.
class StreamInventory {
 public:
  /// Objects by kind.
  struct Counts {
    std::uint64_t segments = 0;
    std::uint64_t states = 0;
    std::uint64_t batches = 0;
    std::uint64_t memberships = 0;
  };

  /// What claiming a listed object answers.
  struct Claim {
    std::uint64_t size_bytes = 0;
    bool again = false;  ///< It was claimed before.
  };

  /// Lists everything below the stream's root, or what begins with one of `prefixes`. Blocks.
  /// Errors: those of the store.
  static Result<StreamInventory> list(const Stream& stream, const CallOptions& call);
  static Result<StreamInventory> list(const Stream& stream,
                                      std::span<const std::string_view> prefixes,
                                      const CallOptions& call);

  /// Slots with a head, in ascending order.
  const std::vector<Slot>& slots() const { return slots_; }
  /// Keys that no part of a stream would be stored under.
  const std::vector<std::string>& foreign() const { return foreign_; }
  /// How many pins there are, and live cursors, closed ones too.
  std::uint64_t pins() const { return pins_; }
  std::uint64_t live_cursors() const { return live_cursors_; }

  /// Marks the object as referenced; nullopt where the listing does not show it.
  std::optional<Claim> claim(const DataName& name);
  std::optional<Claim> claim(const SegmentName& name);

  /// Notes that the object, where it is listed, is referred to but holds trimmed steps alone. That
  /// claims nothing.
  void mark_trimmed(const DataName& name);

  /// What was not claimed so far.
  Counts unclaimed() const;
  /// Calls `visit` for each of these: segments in order, data objects by producer. Says which are
  /// marked as trimmed. `visit` must not claim; an error of it ends the calls.
  Status for_each_unclaimed(const std::function<Status(const SegmentName&)>& visit) const;
  Status for_each_unclaimed(
      const std::function<Status(const DataName&, bool trimmed)>& visit) const;

 private:
  struct DataObject {
    std::uint32_t producer = 0;  ///< By its place in producers_.
    DataKind kind = DataKind::kBatch;
    bool claimed = false;
    bool trimmed = false;
    Term term;
    Seq seq;
    Nonce nonce;
    std::uint64_t size_bytes = 0;
  };
  struct SegmentObject {
    SegmentName name;
    std::uint64_t size_bytes = 0;
    bool claimed = false;
  };

  Status add_all(const Stream& stream, std::string_view prefix, const CallOptions& call);
  void add(objstore::ListedObject object);
  std::uint32_t intern(const std::string& producer);
  void sort();

  static auto order_of(const DataObject& object) {
    return std::tuple(object.producer, object.term, object.seq, object.nonce, object.kind);
  }
  static auto order_of(const SegmentObject& object) {
    return std::tuple(object.name.slot, object.name.level, object.name.nonce);
  }
  /// The place of the listed object with that name; null where it is not listed.
  template <class Object>
  static Object* find(std::vector<Object>& objects, const Object& wanted);
  DataObject* find(const DataName& name);

  std::map<std::string, std::uint32_t, std::less<>> producers_;
  std::vector<Slot> slots_;
  std::vector<SegmentObject> segments_;
  std::vector<DataObject> data_;
  std::vector<std::string> foreign_;
  std::uint64_t pins_ = 0;
  std::uint64_t live_cursors_ = 0;
};

}  // namespace batchloom::store
