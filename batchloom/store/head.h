// SPDX-License-Identifier: Apache-2.0
// The manifest head and what stands in it, as plain values.
//
// A head m/<slot> is self-sufficient: committing slot v+1 needs slot v and nothing else. Its size
// does not depend on history: each part has a budget (limits.h), and what exceeds it is sealed into
// segments or stored beside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/store/ids.h"
#include "batchloom/store/keys.h"

namespace batchloom::store {

/// One batch object in the order of the stream. Steps are dense: the next entry begins where this
/// one ends.
struct Entry {
  Step first_step;
  std::uint32_t steps = 1;  ///< Of a pack; at least 1.
  std::string producer;
  Term term;
  Seq seq;
  Nonce nonce;
  std::uint64_t size_bytes = 0;
  std::uint32_t ranks = 0;  ///< Runs of a step: the HDP ranks of the plan.
  Bytes run_table;          ///< A copy, where ranks x steps <= kInlineRunRows; else empty.

  Step end_step() const { return first_step + steps; }
  DataName object() const { return {DataKind::kBatch, producer, term, seq, nonce}; }
  friend bool operator==(const Entry&, const Entry&) = default;
};

/// Entries with at most this many runs carry a copy of the object's run table.
inline constexpr std::uint64_t kInlineRunRows = 128;

/// The largest run table that an entry may carry: 16 bytes for each rank and step and a CRC for
/// each rank's row, or nothing where the table is too large for the head.
constexpr std::uint64_t run_table_max_bytes(std::uint32_t ranks, std::uint32_t steps) {
  const std::uint64_t runs = std::uint64_t{ranks} * steps;
  return runs > kInlineRunRows ? 0 : 16 * runs + std::uint64_t{4} * ranks;
}

/// A segment as a head, or a segment of a higher level, refers to it.
struct SegmentRef {
  Slot slot;
  std::uint32_t level = 0;
  Nonce nonce;
  Step first_step;               ///< The segment ends where the next one (or the tail) begins.
  std::uint32_t size_bytes = 0;  ///< Of the object, with its frame.
  std::uint32_t crc = 0;         ///< The frame's CRC.

  SegmentName name() const { return {slot, level, nonce}; }
  friend bool operator==(const SegmentRef&, const SegmentRef&) = default;
};

/// A producer state that stands in an object of its own. The object carries the name of whoever
/// wrote it.
struct StateRef {
  Term term;
  Seq seq;
  Nonce nonce;
  std::uint32_t size_bytes = 0;  ///< Of the object, with its frame.
  std::uint32_t crc = 0;         ///< The frame's CRC.
  friend bool operator==(const StateRef&, const StateRef&) = default;
};

/// The opaque state that a producer commits with its batches: inline, or by reference.
struct ProducerState {
  Bytes inline_bytes;  ///< Empty where `ref` is set.
  std::optional<StateRef> ref;
  friend bool operator==(const ProducerState&, const ProducerState&) = default;
};

struct ProducerRow {
  std::string producer;
  Term term;
  Seq next_seq;
  Slot last_slot;  ///< Of this producer's newest commit.
  bool finished = false;
  ProducerState state;

  DataName state_object() const;  ///< Precondition: state.ref is set.
  friend bool operator==(const ProducerRow&, const ProducerRow&) = default;
};

/// Who wrote a head: a producer's session, or nobody in particular (genesis, an event, a trim).
struct Writer {
  std::string producer;
  Term term;
  friend bool operator==(const Writer&, const Writer&) = default;
};

/// A reclaimer's announcement that steps below `step` are about to be trimmed. It belongs to
/// whoever committed it, in `slot`.
struct TrimIntent {
  Step step;  ///< Perhaps above next_step: a pin may name a step that is not committed yet.
  Slot slot;
  friend bool operator==(const TrimIntent&, const TrimIntent&) = default;
};

/// From a step on, and until the next row's, batches are planned for these ranks.
struct TopologyRow {
  Step from_step;
  std::uint32_t ranks = 0;  ///< HDP ranks: runs of a step.
  std::string axes;         ///< As model::to_string(Topology) writes them.
  friend bool operator==(const TopologyRow&, const TopologyRow&) = default;
};

/// Membership keys that stand in an object of their own. Producer and term of its key are the
/// row's.
struct MembershipRef {
  Seq seq;  ///< The producer's next batch when they were stored.
  Nonce nonce;
  std::uint32_t size_bytes = 0;  ///< Of the object, with its frame.
  std::uint32_t crc = 0;         ///< The frame's CRC.
  friend bool operator==(const MembershipRef&, const MembershipRef&) = default;
};

/// From a step on, and until the next row's, these keys decide which samples form the steps.
struct MembershipRow {
  Step from_step;
  MembershipDigest digest;
  std::string producer;  ///< Whose session has set it,
  Term term;             ///< in this term.
  Bytes inline_keys;     ///< Opaque; empty where `ref` is set.
  std::optional<MembershipRef> ref;

  DataName object() const;  ///< Precondition: ref is set.
  friend bool operator==(const MembershipRow&, const MembershipRow&) = default;
};

struct Head {
  Slot slot;
  std::uint32_t previous_crc = 0;  ///< The frame's CRC of slot - 1; 0 at genesis.
  Txid txid;
  Writer writer;
  Step first_step;  ///< Steps below are trimmed.
  Step next_step;
  std::optional<TrimIntent> trim_intent;
  bool ended = false;  ///< The stream ends at next_step: nothing is appended before it is reopened.
  std::vector<TopologyRow> topologies;     ///< In step order, none from above next_step. Those that
                                           ///< hold below first_step only may be gone. Empty: any.
  std::vector<MembershipRow> memberships;  ///< In step order, some perhaps from above next_step.
      ///< Those that hold below memberships_kept_from() only may
      ///< be gone.
  std::vector<Step> skipped;  ///< Ascending, in [first_step, next_step): consumers pass over them.
  std::vector<ProducerRow> producers;  ///< Ordered by name.
  std::vector<std::vector<SegmentRef>>
      segments;             ///< By level, each in step order; higher levels are older.
  std::vector<Entry> tail;  ///< In step order; newer than every segment.

  /// The row that holds for `step`; null where there is none. A membership that holds from
  /// next_step or a later one on may still be replaced.
  const TopologyRow* topology_at(Step step) const;
  const MembershipRow* membership_at(Step step) const;
  /// Memberships that hold from here on are kept: those of steps that are not trimmed, and of the
  /// last one, by which the producers' states were made.
  Step memberships_kept_from() const;
  bool is_skipped(Step step) const;
  const ProducerRow* find_producer(std::string_view name) const;
  ProducerRow* find_producer(std::string_view name);
  friend bool operator==(const Head&, const Head&) = default;
};

/// The next slot's head with everything carried over. Chain, txid and writer are the committer's to
/// fill in.
Head successor(const Head& head);

/// A head together with the CRC of its stored bytes, which the next head's chain needs. Immutable
/// once made.
struct StoredHead {
  Head head;
  std::uint32_t crc = 0;
};

/// The content of a segment: entries at level 0, segments of the level below otherwise. Rows are
/// never merged.
struct Segment {
  std::uint32_t level = 0;
  Step first_step;
  Step end_step;
  std::vector<Entry> entries;        ///< Level 0.
  std::vector<SegmentRef> children;  ///< Level 1 and above.
  friend bool operator==(const Segment&, const Segment&) = default;
};

}  // namespace batchloom::store
