// SPDX-License-Identifier: Apache-2.0
// What has really happened to a stream, rebuilt from the bucket's changes alone, and the rules that
// it must obey.
//
// The history sees every object at the moment it takes effect. It knows nothing of sessions,
// readers or retries. The rules, by their numbers in docs/design/0002-simulation.md:
//
//   I1   one head per slot, chained by CRC
//   I2   slots dense above the floor
//   I3   steps dense, and their entries final
//   I5   what a head names was there before it
//   I6   sequence numbers dense per term
//   I7   every record in exactly one batch, in order
//   I8   no commit of an older term after a fence
//   I10  nothing that is referenced is deleted
//   I11  the floor never falls, and rises before slots go
//   I16  heads keep their limits
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/memory_store.h"
#include "batchloom/simulator/sim_store.h"
#include "batchloom/store/codec.h"
#include "batchloom/store/limits.h"

namespace batchloom::simulator {

/// The records of a simulated batch object: [from, to) of its producer's source.
struct BatchBody {
  std::string producer;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};
Bytes encode_body(const BatchBody& body);
std::optional<BatchBody> decode_body(ByteSpan bytes);

/// A simulated producer's state: the next record of its source, padded to a size.
Bytes encode_source_state(std::uint64_t next_record, std::size_t padding_bytes);
/// 0 for an empty state.
std::uint64_t decode_source_state(ByteSpan state);

/// Collects broken rules: "I6: ...". Only the first few are kept.
class Violations {
 public:
  void add(std::string_view rule, std::string text);
  bool empty() const { return texts_.empty(); }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

/// One thread at a time.
class StoreHistory final : public BucketObserver {
 public:
  StoreHistory(const store::Limits& limits, Violations& violations)
      : limits_(limits), violations_(violations) {}

  /// Where referenced objects are looked up. Called once, before the first event.
  void watch(const objstore::MemoryObjects& objects) { objects_ = &objects; }

  void on_put(std::string_view key, const Bytes& bytes) override;
  void on_remove(std::string_view key) override;

  store::Slot newest() const { return store::Slot(crcs_.size()); }
  store::Slot floor() const { return floor_; }
  const store::Head& head() const { return head_; }
  /// Every entry ever published, in step order.
  const std::vector<store::Entry>& entries() const { return entries_; }
  /// The CRC of a slot that was really committed; nullopt if it never was.
  std::optional<std::uint32_t> crc_of(store::Slot slot) const;
  /// The object published for a sequence number of a term; nullopt if there is none.
  std::optional<store::Nonce> published(std::string_view producer, store::Term term,
                                        store::Seq seq) const;
  /// Records of this producer's source that are published.
  std::uint64_t consumed(std::string_view producer) const;
  /// The producer that fenced in this term; empty where nobody did.
  std::string fenced_by(store::Term term) const;
  /// True for a segment that some committed head has referred to, directly or through another one.
  bool is_referenced(std::string_view segment_key) const { return segments_.contains(segment_key); }
  /// Slots that were created again after their deletion.
  std::uint64_t dead_slots() const { return dead_slots_; }

 private:
  struct SegmentSpan {
    store::SegmentRef ref;
    store::Step first;
    store::Step end;
  };
  struct PublishedKey {
    std::string producer;
    store::Term term;
    store::Seq seq;
    friend auto operator<=>(const PublishedKey&, const PublishedKey&) = default;
  };

  /// The newest head leads to this object: it must neither change nor go.
  bool is_final(std::string_view key) const;
  void on_slot(store::Slot slot, const Bytes& bytes);
  void on_floor(const Bytes& bytes);
  void check_rows(const store::Head& next);
  void check_row(const store::Head& next, const store::ProducerRow& row);
  void check_state(const store::ProducerRow& row);
  void append_entries(const store::Head& next);
  void append_entry(const store::Head& next, const store::Entry& entry);
  void check_tree(const store::Head& next);
  std::optional<SegmentSpan> check_segment(const store::Head& next, const store::SegmentRef& ref);
  void check_tiling(const store::Head& next);
  const Bytes* find(std::string_view key) const;

  const store::Limits& limits_;
  Violations& violations_;
  const objstore::MemoryObjects* objects_ = nullptr;

  std::optional<store::StreamUuid> uuid_;
  std::vector<std::uint32_t> crcs_;  // Of slots 1, 2, ...
  store::Head head_;
  store::Slot floor_;
  std::vector<store::Entry> entries_;
  std::map<std::string, SegmentSpan, std::less<>> segments_;  // Every one ever referenced, by key.
  std::map<PublishedKey, store::Nonce> published_;
  std::map<std::string, std::uint64_t, std::less<>> consumed_;
  std::map<store::Term, std::string> fences_;
  std::uint64_t dead_slots_ = 0;
};

}  // namespace batchloom::simulator
