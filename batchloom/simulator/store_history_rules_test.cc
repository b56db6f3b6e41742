// SPDX-License-Identifier: Apache-2.0
// One wrong head for each check of the step from a head to the next; store_history_test.cc has the
// right ones.
#include <gtest/gtest.h>

#include <functional>

#include "batchloom/simulator/handmade_stream_testing.h"
#include "batchloom/simulator/source_state.h"
#include "batchloom/store/keys.h"

namespace batchloom::simulator {
namespace {

using store::Entry;
using store::Head;
using store::ProducerRow;
using store::Segment;
using store::Slot;
using store::Step;
using store::Term;

/// A stream on which `a` holds the term of slot 2 and has committed the steps 0 and 1, of 3 records
/// each; `b` holds that of slot 5.
class StoreHistoryRulesTest : public testing::Test {
 protected:
  StoreHistoryRulesTest() {
    stream_.commit(stream_.fence("a"));
    stream_.commit(stream_.batch("a", 3));
    stream_.commit(stream_.batch("a", 3));
    stream_.commit(stream_.fence("b"));
  }

  /// Commits the next head of `a` after `spoil`.
  void commit(const std::function<void(Head&)>& spoil) {
    Head next = stream_.next("a");
    spoil(next);
    stream_.commit(next);
  }
  /// The same with one more batch of a's in it.
  void commit_batch(const std::function<void(Head&)>& spoil) {
    Head next = stream_.batch("a");
    spoil(next);
    stream_.commit(next);
  }
  /// Seals the tail, and commits with one more batch of a's.
  void seal() { stream_.seal("a"); }
  /// Replaces the tail of `next` by a segment that holds it, spoilt.
  void seal_spoilt(Head& next, const std::function<void(Segment&)>& spoil) {
    Segment leaf{.level = 0,
                 .first_step = next.tail.front().first_step,
                 .end_step = next.next_step,
                 .entries = next.tail,
                 .children = {}};
    spoil(leaf);
    next.segments.resize(1);
    next.segments[0].push_back(stream_.put_segment(next.slot, leaf));
    next.tail.clear();
  }
  /// A segment that cannot be read leaves a gap too, which is another complaint.
  const std::string& first_complaint() { return stream_.violations().texts().at(0); }
  static ProducerRow& row(Head& head, std::string_view producer = "a") {
    return *head.find_producer(producer);
  }

  HandmadeStream stream_;
};

TEST_F(StoreHistoryRulesTest, BeginRight) {
  seal();
  seal();
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(StoreHistoryRulesTest, I3AnEntryInTheTailNeverChanges) {
  commit([](Head& next) { ++next.tail[0].nonce; });
  EXPECT_TRUE(stream_.breaks_only("I3", "slot 6: the entry of step 0 changed"));
}

TEST_F(StoreHistoryRulesTest, I3NextStepIsWhereEntriesEnd) {
  commit([](Head& next) {
    next.tail.clear();
    next.next_step = Step(0);
  });
  EXPECT_TRUE(stream_.breaks_only("I3", "next step 0, but entries end at 2"));
}

TEST_F(StoreHistoryRulesTest, I3StepsAreDense) {
  commit_batch([&](Head& next) {
    Entry added = next.tail.back();
    next.tail.pop_back();
    next.next_step = Step(2);
    stream_.seal_tail(next);
    added.first_step = Step(3);
    next.tail = {added};
    next.next_step = Step(4);
  });
  EXPECT_TRUE(stream_.breaks_only("I3", "steps are not dense"));
}

TEST_F(StoreHistoryRulesTest, I3ASegmentHoldsOnlyWhatTheReplacedHeadHeld) {
  commit_batch([&](Head& next) {
    const Entry added = next.tail.back();
    stream_.seal_tail(next);
    next.tail = {added};
  });
  EXPECT_TRUE(stream_.breaks_only("I3", "holds entries that the replaced head did not"));
}

TEST_F(StoreHistoryRulesTest, I3ASegmentHoldsPublishedEntries) {
  commit([&](Head& next) { seal_spoilt(next, [](Segment& leaf) { ++leaf.entries[1].nonce; }); });
  EXPECT_TRUE(stream_.breaks_only("I3", "holds an entry that was never published"));
}

TEST_F(StoreHistoryRulesTest, I3ASegmentsChildrenWereReferredTo) {
  commit([&](Head& next) {
    stream_.seal_tail(next);
    stream_.raise_level(next, 0);
  });
  EXPECT_TRUE(stream_.breaks_only("I3", "has a child that no head referred to"));
}

TEST_F(StoreHistoryRulesTest, I3ASegmentsChildrenAreDense) {
  for (int i = 0; i < 3; ++i) seal();
  ASSERT_TRUE(stream_.breaks_only("I16", "3 segments in one level"));
  stream_.violations() = {};
  commit([&](Head& next) {
    next.segments[0].erase(next.segments[0].begin() + 1);
    stream_.raise_level(next, 0);
  });
  EXPECT_TRUE(stream_.breaks_only("I3", "its children are not dense"));
}

TEST_F(StoreHistoryRulesTest, I3ASegmentEndsWhereItsChildrenDo) {
  seal();
  seal();
  commit([&](Head& next) {
    next.segments[0].pop_back();
    stream_.raise_level(next, 0);
  });
  EXPECT_TRUE(stream_.breaks_only("I3", "does not end where it says"));
}

TEST_F(StoreHistoryRulesTest, I3ASegmentIsReferredToInOneWay) {
  seal();
  commit([](Head& next) { ++next.segments[0][0].crc; });
  EXPECT_TRUE(first_complaint().ends_with("referred to in another way"));
  EXPECT_TRUE(first_complaint().starts_with("I3: ")) << first_complaint();
}

TEST_F(StoreHistoryRulesTest, I3ASegmentsChildrenAreThoseOfTheHead) {
  seal();
  seal();
  commit([&](Head& next) {
    ++next.segments[0][1].crc;
    stream_.raise_level(next, 0);
  });
  EXPECT_TRUE(first_complaint().ends_with("refers to a child in another way"));
  EXPECT_TRUE(first_complaint().starts_with("I3: ")) << first_complaint();
}

TEST_F(StoreHistoryRulesTest, I3SegmentsLeaveNoGap) {
  for (int i = 0; i < 2; ++i) seal();
  Head next = stream_.next("a");
  stream_.raise_level(next, 0);
  stream_.seal_tail(next);
  stream_.commit(next);
  stream_.commit(stream_.batch("a"));
  seal();
  ASSERT_TRUE(stream_.is_right());
  commit([](Head& later) { later.segments[0].erase(later.segments[0].begin()); });
  EXPECT_TRUE(stream_.breaks_only("I3", "slot 11: segments leave a gap at step 3"));
}

TEST_F(StoreHistoryRulesTest, I3TheTailBeginsWhereSegmentsEnd) {
  seal();
  seal();
  commit([](Head& next) { next.segments[0].pop_back(); });
  EXPECT_TRUE(stream_.breaks_only("I3", "the tail begins at 3, segments end at 2"));
}

TEST_F(StoreHistoryRulesTest, I5ABatchIsThereBeforeItsEntry) {
  commit_batch([](Head& next) {
    ++next.tail.back().nonce;
    row(next).state.inline_bytes = encode_source_state(6, 0);
  });
  EXPECT_TRUE(stream_.breaks_only("I5", "the object does not exist"));
}

TEST_F(StoreHistoryRulesTest, I5AStateIsThereBeforeItsRow) {
  commit_batch([&](Head& next) {
    stream_.move_state_beside(next, "a");
    ++row(next).state.ref->nonce;
  });
  EXPECT_TRUE(stream_.breaks_only("I5", "named by a row, but it does not exist"));
}

TEST_F(StoreHistoryRulesTest, I5AStateIsTheOneItsRowMeans) {
  commit_batch([&](Head& next) {
    stream_.move_state_beside(next, "a");
    row(next).state.ref->crc ^= 1;
  });
  EXPECT_TRUE(stream_.breaks_only("I5", ".state"));
}

TEST_F(StoreHistoryRulesTest, I5MembershipKeysAreThereBeforeTheirRow) {
  Head next = stream_.membership("a", 2, 1);
  ++next.memberships[0].ref->nonce;
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I5", "the membership from step 2: its keys do not exist"));
}

TEST_F(StoreHistoryRulesTest, I5MembershipKeysAreThoseThatTheRowMeans) {
  Head next = stream_.membership("a", 2, 1);
  next.memberships[0].ref->crc ^= 1;
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I5", ".membership"));
}

TEST_F(StoreHistoryRulesTest, I5MembershipKeysAreThoseOfTheirDigest) {
  Head next = stream_.membership("a", 2, 1);
  ++next.memberships[0].digest.low;
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I5", "its keys are not those of its digest"));
  stream_.violations() = {};
  next = stream_.membership("a", 3, 1);
  next.memberships[1].ref.reset();
  next.memberships[1].inline_keys = to_bytes("other keys");
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I5", "its keys are not those of its digest"));
}

TEST_F(StoreHistoryRulesTest, I5MembershipKeysAreNamedOnlyWhileNobodyMayRemoveThem) {
  Head next = stream_.membership("a", 4, 1);
  stream_.commit(stream_.batch("a"));
  next.slot = next.slot + 1;
  next.next_step = stream_.head().next_step;
  next.tail = stream_.head().tail;
  next.producers = stream_.head().producers;
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I5", "a reclaimer may have removed its keys"));
}

TEST_F(StoreHistoryRulesTest, I5ASegmentIsThereBeforeItsReference) {
  commit([&](Head& next) {
    stream_.seal_tail(next);
    ++next.segments[0][0].nonce;
  });
  EXPECT_TRUE(first_complaint().starts_with("I5: ")) << first_complaint();
  EXPECT_TRUE(first_complaint().ends_with("referenced, but it does not exist"));
}

TEST_F(StoreHistoryRulesTest, I5ASegmentIsWrittenForTheSlotThatRefersToItFirst) {
  Head early = stream_.next("a");
  stream_.seal_tail(early);
  stream_.commit(stream_.fence("b"));
  commit([&](Head& next) {
    next.segments = early.segments;
    next.tail.clear();
  });
  EXPECT_TRUE(first_complaint().ends_with("written for another slot than the first to refer to it"))
      << first_complaint();
  EXPECT_TRUE(first_complaint().starts_with("I5: ")) << first_complaint();
}

TEST_F(StoreHistoryRulesTest, I5ASegmentIsTheOneItsReferenceMeans) {
  commit([&](Head& next) {
    stream_.seal_tail(next);
    next.segments[0][0].crc ^= 1;
  });
  EXPECT_TRUE(first_complaint().starts_with("I5: ")) << first_complaint();
  EXPECT_NE(first_complaint().find("another object"), std::string::npos);
}

TEST_F(StoreHistoryRulesTest, I6ASequenceNumberIsPublishedOnce) {
  commit_batch([&](Head& next) {
    Entry& entry = next.tail.back();
    const Bytes body = encode_body({.producer = "a", .from = 6, .to = 7});
    entry.seq = next.tail[0].seq;
    stream_.put(store::data_key(entry.object()), body);
  });
  EXPECT_TRUE(stream_.breaks_only("I6", "out of turn; 2 was next and 0 came before it"));
}

TEST_F(StoreHistoryRulesTest, I6SequenceNumbersAreDense) {
  commit_batch([&](Head& next) {
    Entry& entry = next.tail.back();
    const Bytes body = encode_body({.producer = "a", .from = 6, .to = 7});
    entry.seq = entry.seq + 3;
    stream_.put(store::data_key(entry.object()), body);
  });
  EXPECT_TRUE(stream_.breaks_only("I6", "out of turn; 2 was next and 0 came before it"));
}

TEST_F(StoreHistoryRulesTest, I6NextSeqCountsBatches) {
  commit_batch([](Head& next) { ++row(next).next_seq; });
  EXPECT_TRUE(stream_.breaks_only("I6", "next_seq went from 2 to 4 with 1 batches"));
}

TEST_F(StoreHistoryRulesTest, I6TheRowOfAnUnfinishedProducerStays) {
  commit([](Head& next) { next.producers.pop_back(); });
  EXPECT_TRUE(stream_.breaks_only("I6", "the row of unfinished b is gone"));
}

TEST_F(StoreHistoryRulesTest, I7ABatchIsOfItsProducer) {
  commit_batch([&](Head& next) {
    stream_.put(store::data_key(next.tail.back().object()),
                encode_body({.producer = "b", .from = 6, .to = 7}));
    row(next).state.inline_bytes = encode_source_state(6, 0);
  });
  EXPECT_TRUE(stream_.breaks_only("I7", "not a batch of this producer"));
}

TEST_F(StoreHistoryRulesTest, I14ABatchHoldsWhatItsEntryMeans) {
  commit_batch([&](Head& next) {
    next.tail.back().size_bytes = 3;
    stream_.put(store::data_key(next.tail.back().object()), Bytes(3));
    row(next).state.inline_bytes = encode_source_state(6, 0);
  });
  EXPECT_TRUE(stream_.breaks_only("I14", ".tgb: not a batch"));
}

TEST_F(StoreHistoryRulesTest, I7NoRecordIsLeftOutOrTakenTwice) {
  for (const std::uint64_t from : {5U, 7U}) {
    HandmadeStream stream;
    stream.commit(stream.fence("a"));
    stream.commit(stream.batch("a", 6));
    Head next = stream.next("a");
    stream.add_batch(next, {.producer = "a", .from = from, .to = 9});
    stream.commit(next);
    EXPECT_TRUE(stream.breaks_only("I7", "but 6 is next"));
  }
}

TEST_F(StoreHistoryRulesTest, I7AStateChangesWithABatch) {
  commit([](Head& next) { row(next).state.inline_bytes.push_back({}); });
  EXPECT_TRUE(stream_.breaks_only("I7", "the state changed without a batch"));
}

TEST_F(StoreHistoryRulesTest, I7AStateIsThatAfterTheLastBatch) {
  commit_batch([](Head& next) { row(next).state.inline_bytes = encode_source_state(8, 0); });
  EXPECT_TRUE(stream_.breaks_only("I7", "its state says 8 records, its batches 7"));
}

TEST_F(StoreHistoryRulesTest, I7AStateBesideIsThatAfterTheLastBatch) {
  commit_batch([&](Head& next) {
    row(next).state.inline_bytes = encode_source_state(8, 0);
    stream_.move_state_beside(next, "a");
  });
  EXPECT_TRUE(stream_.breaks_only("I7", "its state says 8 records, its batches 7"));
}

TEST_F(StoreHistoryRulesTest, I8AnOldTermCommitsNothing) {
  stream_.commit(stream_.fence("a"));
  commit_batch([&](Head& next) {
    Entry& entry = next.tail.back();
    const Bytes body = encode_body({.producer = "a", .from = 6, .to = 7});
    next.writer.term = entry.term = Term(2);
    stream_.put(store::data_key(entry.object()), body);
  });
  EXPECT_TRUE(stream_.breaks_only("I8", "committed by a term that is not the producer's"));
}

TEST_F(StoreHistoryRulesTest, I8AnOldTermFinishesNothing) {
  stream_.commit(stream_.fence("a"));
  commit([](Head& next) {
    next.writer.term = Term(2);
    row(next).finished = true;
  });
  EXPECT_TRUE(stream_.breaks_only("I8", "slot 7: written by term 2 of a, which is not its term"));
}

TEST_F(StoreHistoryRulesTest, I8ARowIsChangedByItsProducerAlone) {
  commit_batch([](Head& next) { row(next, "b").finished = true; });
  EXPECT_TRUE(stream_.breaks_only("I8", "producer b: changed by another producer"));
}

TEST_F(StoreHistoryRulesTest, I8ABatchIsCommittedByItsProducer) {
  for (const Term term : {Term(2), Term(5)}) {
    HandmadeStream stream;
    stream.commit(stream.fence("a"));
    for (const char* other : {"x", "y", "b"}) stream.commit(stream.fence(other));
    Head next = stream.batch("a");
    next.writer = {"b", term};
    stream.commit(next);
    EXPECT_TRUE(stream.breaks_only("I8", "committed by a term that is not the producer's"));
  }
}

TEST_F(StoreHistoryRulesTest, I8AFenceChangesTheTermAlone) {
  const std::function<void(Head&)> spoils[] = {
      [](Head& next) { row(next).term = next.writer.term = Term(3); },
      [](Head& next) { next.writer = {"b", Term(5)}; },
      [](Head& next) { next.writer.term = Term(2); },
      [](Head& next) { ++row(next).next_seq; },
      [](Head& next) { row(next).state.inline_bytes = encode_source_state(9, 0); },
      [](Head& next) { ++row(next, "b").term; },
  };
  for (const auto& spoil : spoils) {
    HandmadeStream stream;
    stream.commit(stream.fence("a"));
    stream.commit(stream.batch("a", 3));
    stream.commit(stream.fence("c"));
    stream.commit(stream.fence("b"));
    Head next = stream.fence("a");
    row(next, "b").last_slot = next.slot;
    spoil(next);
    stream.commit(next);
    EXPECT_TRUE(stream.breaks_only("I8", "the term moved without a fence"));
  }
}

}  // namespace
}  // namespace batchloom::simulator
