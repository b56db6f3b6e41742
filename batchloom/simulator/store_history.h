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
//   I10  nothing goes that is referenced, or that may yet be
//   I11  floor and first step never fall, and the floor rises before slots go
//   I12  pins and live cursors keep their steps (pin_rules.h, edit_rules.h)
//   I14  a batch object holds what its entry means, each token on one rank (batch_inspector.h)
//   I15  only events change what all ranks must agree on (edit_rules.h)
//   I16  heads keep their limits
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/objstore/memory_store.h"
#include "batchloom/simulator/batch_inspector.h"
#include "batchloom/simulator/pin_rules.h"
#include "batchloom/simulator/sim_store.h"
#include "batchloom/simulator/violations.h"
#include "batchloom/store/codec.h"
#include "batchloom/store/limits.h"

namespace batchloom::simulator {

/// What a committed slot said to those who read it.
struct SlotFacts {
  std::uint32_t crc = 0;
  store::Step first_step;
  store::Step next_step;
  bool ended = false;
  std::uint32_t ranks = 0;  ///< Of what may be appended; 0: any number.
  std::vector<store::MembershipRow> memberships;
};

/// How often heads and removals did what.
struct HistoryCounts {
  std::uint64_t dead_slots = 0;  ///< Created again after their deletion.
  std::uint64_t intents = 0;
  std::uint64_t withdrawals = 0;  ///< Of intents, without a trim.
  std::uint64_t trims = 0;
  std::uint64_t skips = 0;
  std::uint64_t ends = 0;
  std::uint64_t reopenings = 0;
  std::uint64_t topologies = 0;
  std::uint64_t memberships = 0;           ///< Set, or taken back.
  std::uint64_t replaced_memberships = 0;  ///< By others from the same step on, or by none.
  std::uint64_t orphaned_batches_removed = 0;
  std::uint64_t trimmed_batches_removed = 0;
  std::uint64_t orphaned_segments_removed = 0;
  std::uint64_t trimmed_segments_removed = 0;
};

/// One thread at a time.
class StoreHistory final : public BucketObserver {
 public:
  StoreHistory(const store::Limits& limits, const BatchInspector& inspector, Violations& violations)
      : limits_(limits), inspector_(inspector), violations_(violations), pins_(violations) {}

  /// Where referenced objects are looked up. Called once, before the first event.
  void watch(const objstore::MemoryObjects& objects) { objects_ = &objects; }

  void on_put(std::string_view key, const Bytes& bytes) override;
  void on_remove(std::string_view key) override;
  /// Processes were told that these hold; from now on they must.
  void pin_told(const store::Pin& pin);
  void cursor_told(const std::string& group, store::Step step);
  /// What a group may say of itself from now on, as of PinRules.
  void cursor_opening(const std::string& group, store::Step step) {
    pins_.cursor_opening(group, step);
  }
  void group_reached(const std::string& group, store::Step step) {
    pins_.group_reached(group, step);
  }

  store::Slot newest() const { return store::Slot(slots_.size()); }
  store::Slot floor() const { return floor_; }
  const store::Head& head() const { return head_; }
  /// Every entry ever published, in step order.
  const std::vector<store::Entry>& entries() const { return entries_; }
  /// The entry that contains `step`; null where none was published.
  const store::Entry* entry_of(store::Step step) const;
  /// What a slot that was really committed said; null if it never was.
  const SlotFacts* slot(store::Slot slot) const;
  /// The slot that skips `step`; nullopt if none does.
  std::optional<store::Slot> skipped_by(store::Step step) const;
  /// The object published for a sequence number of a term; nullopt if there is none.
  std::optional<store::Nonce> published(std::string_view producer, store::Term term,
                                        store::Seq seq) const;
  /// Records of this producer's source that are published.
  std::uint64_t consumed(std::string_view producer) const;
  /// The producer that fenced in this term; empty where nobody did.
  std::string fenced_by(store::Term term) const;
  /// True for a segment that some committed head has referred to, directly or through another one.
  bool is_referenced(std::string_view segment_key) const { return segments_.contains(segment_key); }
  /// The stream needs the object: it must neither change nor go.
  bool is_needed(std::string_view key) const;
  /// A head to come may name the object.
  bool may_be_named(std::string_view key) const;
  const PinRules& pins() const { return pins_; }
  const HistoryCounts& counts() const { return counts_; }

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
  struct Published {
    store::Nonce nonce;
    store::Step end;
  };

  const Published* find_published(const store::DataName& name) const;
  void on_slot(store::Slot slot, const Bytes& bytes);
  void on_floor(const Bytes& bytes);
  void count_removal(std::string_view key);
  void note(const store::StoredHead& next);
  void check_rows(const store::Head& next);
  void check_row(const store::Head& next, const store::ProducerRow& row);
  void check_state(const store::ProducerRow& row);
  void check_memberships(const store::Head& next);
  void check_keys(const store::Head& next, const store::MembershipRow& row);
  void append_entries(const store::Head& next);
  void append_entry(const store::Head& next, const store::Entry& entry);
  void check_object(const store::Entry& entry, const std::string& where);
  void check_tree(const store::Head& next);
  std::optional<SegmentSpan> check_segment(const store::Head& next, const store::SegmentRef& ref);
  void check_tiling(const store::Head& next);
  const SharedBytes* find(std::string_view key) const;

  const store::Limits& limits_;
  const BatchInspector& inspector_;
  Violations& violations_;
  const objstore::MemoryObjects* objects_ = nullptr;

  std::optional<store::StreamUuid> uuid_;
  std::vector<SlotFacts> slots_;  // Of slots 1, 2, ...
  store::Head head_;
  store::Slot floor_;
  std::vector<store::Entry> entries_;
  std::map<std::string, SegmentSpan, std::less<>> segments_;  // Every one ever referenced, by key.
  std::map<PublishedKey, Published> published_;
  std::map<std::string, std::uint64_t, std::less<>> consumed_;
  std::map<store::Term, std::string> fences_;
  std::map<store::Step, store::Slot> skips_;
  PinRules pins_;
  HistoryCounts counts_;
};

}  // namespace batchloom::simulator
