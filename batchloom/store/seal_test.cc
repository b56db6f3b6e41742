// SPDX-License-Identifier: Apache-2.0
// Random histories of pure proposals, with limits so small that levels fill within a few commits,
// and long ones with the product's limits.
#include "batchloom/store/seal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "batchloom/base/random.h"
#include "batchloom/store/proposal.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

/// A stream without a store: heads follow one another, and segments lie in a map.
class History {
 public:
  explicit History(const Limits& limits) : limits_(limits) {
    head_.slot = Slot(1);
    head_ = fence_producer(head_, "p", limits_).value();
  }

  /// Commits all batches, over as many slots as it takes, and checks each proposal.
  void commit(std::vector<PendingBatch> batches) {
    std::span<const PendingBatch> rest(batches);
    for (PendingBatch& batch : batches) {
      batch.seq = next_seq_;
      batch.nonce = Nonce(++nonces_);
      ++next_seq_;
    }
    while (!rest.empty()) {
      Proposal proposal = append_batches(head_, {"p", Term(2)}, rest, uuid_, limits_,
                                         [this] { return Nonce(++nonces_); });
      check(proposal);
      rest = rest.subspan(proposal.batches);
      head_ = std::move(proposal.head);
      entries_.insert(entries_.end(), head_.tail.end() - std::ptrdiff_t(proposal.batches),
                      head_.tail.end());
    }
  }

  /// The tree and the tail, read from left to right, are all entries ever committed.
  void check_all() const {
    std::vector<Entry> found;
    for (std::size_t level = head_.segments.size(); level-- > 0;) {
      for (const SegmentRef& ref : head_.segments[level]) walk(ref, found);
    }
    found.insert(found.end(), head_.tail.begin(), head_.tail.end());
    RC_ASSERT(found == entries_);
    RC_ASSERT(head_.next_step == (entries_.empty() ? Step(0) : entries_.back().end_step()));
  }

  const Head& head() const { return head_; }
  std::size_t levels() const { return head_.segments.size(); }

 private:
  std::size_t refs_bytes() const {
    std::size_t bytes = 0;
    for (const auto& level : head_.segments) bytes += level.size() * encoded_bound(SegmentRef{});
    return bytes;
  }

  void check(const Proposal& proposal) {
    const Head& next = proposal.head;
    RC_ASSERT(proposal.batches > 0u);
    RC_ASSERT(next.tail.size() <= limits_.tail_entries);
    RC_ASSERT(proposal.segments.empty() || next.tail.size() == proposal.batches);
    const Encoded encoded = encode_head(uuid_, chained(next));
    RC_ASSERT(decode_head(uuid_, next.slot, encoded.bytes).value().head == chained(next));
    std::size_t refs = 0;
    for (const auto& level : next.segments) {
      RC_ASSERT(level.size() <= limits_.arity);
      refs += level.size();
    }
    const bool could_move_up =
        std::ranges::any_of(next.segments, [](const auto& level) { return level.size() > 2; });
    RC_ASSERT(refs * encoded_bound(SegmentRef{}) <= limits_.segment_bytes || !could_move_up);
    for (const PendingSegment& segment : proposal.segments) check(segment, next.slot);
    for (const auto& level : next.segments) {
      for (const SegmentRef& ref : level) RC_ASSERT(segments_.contains(segment_key(ref.name())));
    }
  }

  static Head chained(Head head) {
    head.txid = {1, 2};
    return head;
  }

  // A segment holds only what the replaced head held: where the arity alone decides, segments of
  // that very head; where the byte budget is tiny, perhaps one that the same seal has just written.
  void check(const PendingSegment& pending, Slot slot) {
    RC_ASSERT(pending.name.slot == slot);
    RC_ASSERT(segments_.emplace(segment_key(pending.name), pending.object.bytes).second);
    const std::size_t level = pending.name.level;
    if (level > 0 && limits_.segment_bytes < Limits{}.segment_bytes) return;
    const Step first =
        level == 0 ? head_.tail.front().first_step : head_.segments[level - 1].front().first_step;
    const SegmentRef ref{.slot = slot,
                         .level = pending.name.level,
                         .nonce = pending.name.nonce,
                         .first_step = first,
                         .size_bytes = std::uint32_t(pending.object.bytes.size()),
                         .crc = pending.object.crc};
    const Segment segment = decode_segment(uuid_, ref, pending.object.bytes).value();
    if (segment.level == 0) {
      RC_ASSERT(segment.entries == head_.tail);
    } else {
      RC_ASSERT(segment.children == head_.segments[level - 1]);
      RC_ASSERT(segment.children.size() == limits_.arity);
    }
  }

  void walk(const SegmentRef& ref, std::vector<Entry>& found) const {
    const Bytes& object = segments_.at(segment_key(ref.name()));
    const Segment segment = decode_segment(uuid_, ref, object).value();
    RC_ASSERT(segment.children.size() <= limits_.arity);
    for (const SegmentRef& child : segment.children) walk(child, found);
    found.insert(found.end(), segment.entries.begin(), segment.entries.end());
    RC_ASSERT(found.back().end_step() == segment.end_step);
  }

  const StreamUuid uuid_ = test_uuid(1);
  Limits limits_;
  Head head_;
  Seq next_seq_;
  std::uint64_t nonces_ = 0;
  std::map<std::string, Bytes> segments_;
  std::vector<Entry> entries_;
};

std::vector<PendingBatch> any_batches() {
  return *rc::gen::container<std::vector<PendingBatch>>(rc::gen::exec([] {
    PendingBatch batch;
    batch.steps = *rc::gen::weightedOneOf<std::uint32_t>(
        {{9, rc::gen::inRange<std::uint32_t>(1, 5)}, {1, rc::gen::just<std::uint32_t>(1u << 31)}});
    batch.ranks = *rc::gen::inRange<std::uint32_t>(0, 3);
    const bool has_table = *rc::gen::arbitrary<bool>();
    if (has_table) batch.run_table.resize(run_table_max_bytes(batch.ranks, batch.steps));
    return batch;
  }));
}

RC_GTEST_PROP(SealProperty, TheTreeTilesTheStepsWithTinyLimits, ()) {
  Limits limits;
  limits.tail_entries = *rc::gen::inRange<std::size_t>(1, 6);
  limits.arity = *rc::gen::inRange<std::size_t>(2, 5);
  if (*rc::gen::arbitrary<bool>()) {
    limits.segment_bytes = *rc::gen::inRange<std::size_t>(1, 8) * encoded_bound(SegmentRef{});
  }
  if (*rc::gen::arbitrary<bool>()) limits.tail_bytes = *rc::gen::inRange<std::size_t>(600, 2000);
  History history(limits);
  const auto commits = *rc::gen::inRange(0, 40);
  for (int i = 0; i < commits; ++i) history.commit(any_batches());
  history.check_all();
  RC_CLASSIFY(history.levels() >= 3);
}

TEST(Seal, LevelsFillLikeDigits) {
  Limits limits;
  limits.tail_entries = 1;
  limits.arity = 3;
  History history(limits);
  for (std::size_t sealed = 0; sealed < 100; ++sealed) {
    history.commit(std::vector<PendingBatch>(1));
    std::size_t refs = 0;
    std::size_t weight = 1;
    for (const auto& level : history.head().segments) {
      refs += level.size() * weight;
      weight *= 3;
    }
    EXPECT_EQ(refs, sealed);
  }
  EXPECT_EQ(history.levels(), 4u) << "99 leaves; 3 + 9 + 27 + 81 of them would fit";
  history.check_all();
}

TEST(Seal, AnEmptyTailIsNotSealed) {
  Head head;
  EXPECT_DEATH(seal_tail(head, Slot(2), test_uuid(1), {}, [] { return Nonce(1); }), "entries");
}

TEST(FittingPrefix, StopsAtTheFirstThatDoesNotFit) {
  Head head;
  std::vector<Entry> entries(4);
  entries[2].run_table.resize(200);
  const std::size_t small = encoded_bound(entries[0]);
  EXPECT_EQ(fitting_prefix(head, entries, {}), 4u);
  EXPECT_EQ(fitting_prefix(head, entries, {.tail_bytes = 3 * small}), 2u);
  EXPECT_EQ(fitting_prefix(head, entries, {.tail_entries = 3}), 3u);
  head.tail.resize(2);
  EXPECT_EQ(fitting_prefix(head, entries, {.tail_bytes = 3 * small}), 1u);
  EXPECT_EQ(fitting_prefix(head, entries, {.tail_entries = 2}), 0u);
  EXPECT_EQ(fitting_prefix(head, {}, {}), 0u);
}

}  // namespace
}  // namespace batchloom::store
