// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "batchloom/store/keys.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// What a listing of a whole stream shows, sorted by kind, and which of it was claimed since: what
/// nobody claims is an orphan. 56 bytes an object, whatever its key. One thread at a time.
class StreamInventory {
 public:
  /// Objects by kind.
  struct Counts {
    std::uint64_t segments = 0;
    std::uint64_t states = 0;
    std::uint64_t batches = 0;
  };

  /// What claiming a listed object answers.
  struct Claim {
    std::uint64_t size_bytes = 0;
    bool again = false;  ///< It was claimed before.
  };

  /// Lists everything below the stream's root. Blocks. Errors: those of the store.
  static Result<StreamInventory> list(const Stream& stream, const CallOptions& call);

  /// Slots with a head, in ascending order.
  const std::vector<Slot>& slots() const { return slots_; }
  /// Keys that no part of a stream would be stored under.
  const std::vector<std::string>& foreign() const { return foreign_; }

  /// Marks the object as referenced; nullopt where the listing does not show it.
  std::optional<Claim> claim(const DataName& name);
  std::optional<Claim> claim(const SegmentName& name);

  /// What was not claimed so far.
  Counts unclaimed() const;

 private:
  struct DataObject {
    std::uint32_t producer = 0;  ///< By its place in producers_.
    DataKind kind = DataKind::kBatch;
    bool claimed = false;
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

  void add(objstore::ListedObject object);
  std::uint32_t intern(const std::string& producer);
  void sort();

  static auto order_of(const DataObject& object) {
    return std::tuple(object.producer, object.term, object.seq, object.nonce, object.kind);
  }
  static auto order_of(const SegmentObject& object) {
    return std::tuple(object.name.slot, object.name.level, object.name.nonce);
  }
  template <class Object>
  static std::optional<Claim> claim_in(std::vector<Object>& objects, const Object& wanted);

  std::map<std::string, std::uint32_t, std::less<>> producers_;
  std::vector<Slot> slots_;
  std::vector<SegmentObject> segments_;
  std::vector<DataObject> data_;
  std::vector<std::string> foreign_;
};

}  // namespace batchloom::store
