// SPDX-License-Identifier: Apache-2.0
// What the history makes of the bucket's changes: right ones, and one wrong one for each check of
// slots, the floor, sizes and removals.
#include "batchloom/simulator/store_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/simulator/handmade_stream_testing.h"
#include "batchloom/store/keys.h"

namespace batchloom::simulator {
namespace {

using store::Head;
using store::Nonce;
using store::Seq;
using store::Slot;
using store::Step;
using store::Term;
using testing::ElementsAre;
using testing::SizeIs;

/// A stream on which `a` holds the term of slot 2 and has committed two batches, of 3 records each.
class StoreHistoryTest : public testing::Test {
 protected:
  StoreHistoryTest() {
    stream_.commit(stream_.fence("a"));
    stream_.commit(stream_.batch("a", 3));
    stream_.commit(stream_.batch("a", 3));
  }
  const StoreHistory& history() const { return stream_.history(); }
  std::string key_of(std::size_t entry) const {
    return store::data_key(history().entries().at(entry).object());
  }

  HandmadeStream stream_;
};

TEST_F(StoreHistoryTest, KnowsWhatIsPublished) {
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(history().newest(), Slot(4));
  EXPECT_EQ(history().floor(), Slot(0));
  EXPECT_THAT(history().entries(), SizeIs(2));
  EXPECT_EQ(history().consumed("a"), 6U);
  EXPECT_EQ(history().consumed("b"), 0U);
  EXPECT_EQ(history().published("a", Term(2), Seq(1)), history().entries()[1].nonce);
  EXPECT_EQ(history().published("a", Term(2), Seq(2)), std::nullopt);
  EXPECT_EQ(history().published("a", Term(3), Seq(1)), std::nullopt);
  EXPECT_NE(history().slot(Slot(3))->crc, history().slot(Slot(4))->crc);
  EXPECT_EQ(history().slot(Slot(3))->next_step, Step(1));
  EXPECT_EQ(history().slot(Slot(0)), nullptr);
  EXPECT_EQ(history().slot(Slot(5)), nullptr);
  EXPECT_EQ(*history().entry_of(Step(1)), history().entries()[1]);
  EXPECT_EQ(history().entry_of(Step(2)), nullptr);
}

TEST_F(StoreHistoryTest, AcceptsALongAndRightHistory) {
  stream_.commit(stream_.fence("b"));
  for (int round = 0; round < 6; ++round) {
    Head next = stream_.next("a");
    stream_.seal_tail(next);
    if (next.segments[0].size() > 2) {
      next = stream_.next("a");
      stream_.raise_level(next, 0);
      stream_.seal_tail(next);
    }
    const std::uint64_t from = history().consumed("a");
    stream_.add_batch(next, {.producer = "a", .from = from, .to = from + 1});
    stream_.add_batch(next, {.producer = "a", .from = from + 1, .to = from + 4});
    if (round % 2 == 0) stream_.move_state_beside(next, "a");
    stream_.commit(next);
    Head pack = stream_.batch("b", 2);
    pack.tail.back().steps = 3;
    pack.next_step = pack.next_step + 2;
    stream_.commit(pack);
    if (round == 2) stream_.commit(stream_.fence("a"));
  }
  EXPECT_TRUE(stream_.is_right());
  ASSERT_THAT(history().head().segments, SizeIs(2));
  EXPECT_EQ(history().head().next_step, Step(32));
}

TEST_F(StoreHistoryTest, LetsAFinishedProducerGoAndBeginAgain) {
  Head finish = stream_.next("a");
  finish.find_producer("a")->finished = true;
  stream_.commit(finish);
  Head fence = stream_.fence("b");
  std::erase_if(fence.producers, [](const auto& row) { return row.producer == "a"; });
  stream_.commit(fence);
  stream_.commit(stream_.fence("a"));
  EXPECT_EQ(history().consumed("a"), 0U);
  stream_.commit(stream_.batch("a"));
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(StoreHistoryTest, CountsSlotsThatAreCreatedAgainBelowTheFloor) {
  const Head dead = stream_.head();
  stream_.commit(stream_.batch("a"));
  stream_.put_floor(4);
  stream_.remove(store::manifest_key(Slot(4)));
  EXPECT_EQ(history().counts().dead_slots, 0U);
  stream_.commit_on(dead, 1);
  stream_.remove(store::manifest_key(Slot(4)));
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(history().counts().dead_slots, 1U);
  EXPECT_EQ(history().newest(), Slot(5));
}

TEST_F(StoreHistoryTest, LetsOrphansGo) {
  Head next = stream_.batch("a");
  stream_.move_state_beside(next, "a");
  stream_.commit(next);
  const std::string old_state = store::data_key(next.find_producer("a")->state_object());
  next = stream_.batch("a");
  stream_.move_state_beside(next, "a");
  stream_.commit(next);
  stream_.remove(old_state);
  auto orphan = history().entries()[0].object();
  orphan.nonce = stream_.next_nonce();
  stream_.remove(store::data_key(orphan));
  const auto lost = stream_.put_segment(Slot(5), store::Segment());
  EXPECT_FALSE(history().is_referenced(store::segment_key(lost.name())));
  stream_.remove(store::segment_key(lost.name()));
  stream_.remove("stray");
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(StoreHistoryTest, I1ASlotIsWrittenOnce) {
  stream_.commit_on(stream_.head(), stream_.crc_of(Slot(3)));
  EXPECT_TRUE(stream_.breaks_only("I1", "slot 4 was written twice"));
}

TEST_F(StoreHistoryTest, I1AHeadCanBeRead) {
  stream_.put(store::manifest_key(Slot(5)), to_bytes("?"));
  EXPECT_TRUE(stream_.breaks_only("I1", "corruption: m/00000000000000000005"));
}

TEST_F(StoreHistoryTest, I1AHeadIsChainedToTheOneBefore) {
  stream_.commit_on(stream_.batch("a"), stream_.crc_of(Slot(3)));
  EXPECT_TRUE(stream_.breaks_only("I1", "slot 5 is not chained"));
}

TEST_F(StoreHistoryTest, I2SlotsAreDense) {
  Head next = stream_.fence("a");
  next.slot = Slot(6);
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I2", "slot 6 follows slot 4"));
}

TEST_F(StoreHistoryTest, I10AReferencedSegmentStays) {
  Head next = stream_.next("a");
  stream_.seal_tail(next);
  const std::string leaf = store::segment_key(next.segments[0][0].name());
  stream_.commit(next);
  EXPECT_TRUE(history().is_referenced(leaf));
  next = stream_.next("a");
  stream_.raise_level(next, 0);
  stream_.commit(next);
  EXPECT_TRUE(stream_.is_right());
  stream_.remove(leaf);
  EXPECT_TRUE(stream_.breaks_only("I10", leaf + " deleted, though the stream needs it"));
}

TEST_F(StoreHistoryTest, I10ASegmentWhoseSlotIsNotDecidedStays) {
  const auto ref = stream_.put_segment(Slot(5), store::Segment());
  const std::string key = store::segment_key(ref.name());
  EXPECT_TRUE(history().may_be_named(key));
  stream_.remove(key);
  EXPECT_TRUE(stream_.breaks_only("I10", key + " deleted, though it may yet be committed"));
}

TEST_F(StoreHistoryTest, I10AnObjectThatItsProducerMayCommitStays) {
  for (const store::DataKind kind :
       {store::DataKind::kBatch, store::DataKind::kState, store::DataKind::kMembership}) {
    for (const std::uint64_t seq : {1U, 2U, 3U}) {
      for (const std::uint64_t term : {1U, 2U}) {
        HandmadeStream stream;
        stream.commit(stream.fence("a"));
        stream.commit(stream.batch("a"));
        stream.commit(stream.batch("a"));
        const store::DataName name{kind, "a", Term(term), Seq(seq), stream.next_nonce()};
        stream.remove(store::data_key(name));
        if (seq < 2 || term == 1) {
          EXPECT_TRUE(stream.is_right());
        } else {
          EXPECT_TRUE(stream.breaks_only("I10", "deleted, though it may yet be committed"));
        }
      }
    }
  }
}

TEST_F(StoreHistoryTest, I10APublishedBatchStays) {
  stream_.remove(key_of(0));
  EXPECT_TRUE(stream_.breaks_only("I10", key_of(0) + " deleted, though the stream needs it"));
}

TEST_F(StoreHistoryTest, I10AStateStaysWhileItsRowNamesIt) {
  Head next = stream_.batch("a");
  stream_.move_state_beside(next, "a");
  stream_.commit(next);
  stream_.commit(stream_.fence("a"));
  stream_.remove(store::data_key(next.find_producer("a")->state_object()));
  EXPECT_TRUE(stream_.breaks_only("I10", "deleted, though the stream needs it"));
}

TEST_F(StoreHistoryTest, I10MembershipKeysStayWhileARowNamesThem) {
  const store::Step next_step = stream_.head().next_step;
  const Head set = stream_.membership("a", next_step.value, 1);
  stream_.commit(set);
  const std::string replaced = store::data_key(set.memberships[0].object());
  const Head again = stream_.membership("a", next_step.value, 2);
  stream_.commit(again);
  stream_.commit(stream_.batch("a"));
  stream_.remove(replaced);
  EXPECT_TRUE(stream_.is_right());
  const std::string named = store::data_key(again.memberships[0].object());
  stream_.remove(named);
  EXPECT_TRUE(stream_.breaks_only("I10", named + " deleted, though the stream needs it"));
}

TEST_F(StoreHistoryTest, I10FormatAndFloorStay) {
  for (const std::string_view key : {store::kFormatKey, store::kFloorKey}) {
    HandmadeStream stream;
    stream.remove(key);
    EXPECT_TRUE(stream.breaks_only("I10", "deleted, though the stream needs it")) << key;
  }
}

TEST_F(StoreHistoryTest, I3WhatIsPublishedIsNeverOverwritten) {
  stream_.put(key_of(0), encode_body({.producer = "a", .from = 0, .to = 9}));
  EXPECT_TRUE(stream_.breaks_only("I3", key_of(0) + " was overwritten"));
}

TEST_F(StoreHistoryTest, I5AnEntrySaysHowLargeItsObjectIs) {
  Head next = stream_.batch("a");
  ++next.tail.back().size_bytes;
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I5", "bytes, its entry says"));
}

TEST_F(StoreHistoryTest, I11TheFloorNeverFalls) {
  stream_.put_floor(3);
  stream_.put_floor(3);
  EXPECT_TRUE(stream_.is_right());
  stream_.put_floor(2);
  EXPECT_TRUE(stream_.breaks_only("I11", "the floor fell from 3 to 2"));
}

TEST_F(StoreHistoryTest, I11TheFloorStaysBelowTheHead) {
  stream_.put_floor(4);
  EXPECT_TRUE(stream_.breaks_only("I11", "the floor 4 reached the head 4"));
}

TEST_F(StoreHistoryTest, I11TheFloorCanBeRead) {
  stream_.put(store::kFloorKey, to_bytes("?"));
  EXPECT_TRUE(stream_.breaks_only("I11", "corruption: gc/floor"));
}

TEST_F(StoreHistoryTest, I11TheFloorRisesBeforeSlotsGo) {
  stream_.put_floor(2);
  stream_.remove(store::manifest_key(Slot(2)));
  EXPECT_TRUE(stream_.is_right());
  stream_.remove(store::manifest_key(Slot(3)));
  EXPECT_TRUE(stream_.breaks_only("I11", "m/00000000000000000003 deleted above the floor 2"));
}

TEST_F(StoreHistoryTest, I16ATailHasAtMostSoManyEntries) {
  Head next = stream_.next("a");
  for (std::uint64_t record = 6; record < 9; ++record)
    stream_.add_batch(next, {.producer = "a", .from = record, .to = record + 1});
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I16", "slot 5: "));
}

TEST_F(StoreHistoryTest, I16AHeadHasAtMostSoManyBytes) {
  Head next = stream_.batch("a");
  next.find_producer("a")->state.inline_bytes.resize(store::kHeadMaxBytes);
  stream_.commit(next);
  EXPECT_TRUE(stream_.breaks_only("I16", "slot 5: "));
}

TEST_F(StoreHistoryTest, I16ALevelHasAtMostSoManySegments) {
  for (int i = 0; i < 3; ++i) {
    Head next = stream_.next("a");
    stream_.seal_tail(next);
    const std::uint64_t from = history().consumed("a");
    stream_.add_batch(next, {.producer = "a", .from = from, .to = from + 1});
    EXPECT_TRUE(stream_.is_right());
    stream_.commit(next);
  }
  EXPECT_TRUE(stream_.breaks_only("I16", "slot 7: 3 segments in one level"));
}

TEST(Violations, KeepsTheFirstFew) {
  Violations violations;
  EXPECT_TRUE(violations.empty());
  for (int i = 0; i < 100; ++i) violations.add("I" + std::to_string(i), "text");
  EXPECT_FALSE(violations.empty());
  EXPECT_EQ(violations.texts().front(), "I0: text");
  EXPECT_LT(violations.texts().size(), 100U);
}

}  // namespace
}  // namespace batchloom::simulator
