// SPDX-License-Identifier: Apache-2.0
// Right trims and events, and one wrong head for each check of what belongs to no producer.
#include "batchloom/simulator/edit_rules.h"

#include <gtest/gtest.h>

#include <functional>

#include "batchloom/simulator/handmade_stream_testing.h"
#include "batchloom/store/keys.h"

namespace batchloom::simulator {
namespace {

using store::Head;
using store::Slot;
using store::Step;
using store::TopologyRow;

/// A stream on which `a` has committed steps 0 to 6: two segments of [0, 2) and [2, 4), and a tail
/// of [4, 5) and [5, 7).
class EditRulesTest : public testing::Test {
 protected:
  EditRulesTest() {
    stream_.commit(stream_.fence("a"));
    stream_.commit(stream_.batch("a"));
    stream_.commit(stream_.batch("a"));
    stream_.seal("a");
    stream_.commit(stream_.batch("a"));
    stream_.seal("a");
    Head pack = stream_.batch("a");
    pack.tail.back().steps = 2;
    pack.next_step = Step(7);
    stream_.commit(pack);
  }

  /// Commits `next` after `spoil`.
  void commit(Head next, const std::function<void(Head&)>& spoil = nullptr) {
    if (spoil) spoil(next);
    stream_.commit(next);
  }
  void commit_skip(std::uint64_t step) {
    commit(stream_.edit(), [step](Head& next) { next.skipped.emplace_back(step); });
  }
  void commit_topology(std::uint32_t ranks) {
    commit(stream_.edit(), [ranks](Head& next) { add_topology(next, ranks); });
  }
  static void add_topology(Head& next, std::uint32_t ranks) {
    std::erase_if(next.topologies,
                  [&](const TopologyRow& row) { return row.from_step == next.next_step; });
    next.topologies.push_back({next.next_step, ranks, "dp=" + std::to_string(ranks)});
  }
  const HistoryCounts& counts() const { return stream_.history().counts(); }

  HandmadeStream stream_;
};

TEST_F(EditRulesTest, BeginRight) {
  ASSERT_EQ(stream_.head().segments[0].size(), 2U);
  ASSERT_EQ(stream_.head().tail.size(), 2U);
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(EditRulesTest, ATrimDropsWhatItMay) {
  commit_skip(1);
  commit_skip(6);
  commit(stream_.intent(9));
  commit(stream_.trim(3));
  EXPECT_EQ(stream_.head().segments[0].size(), 1U);
  EXPECT_EQ(stream_.head().skipped, std::vector{Step(6)});
  commit(stream_.intent(6));
  commit(stream_.trim(6));
  EXPECT_EQ(stream_.head().tail.size(), 1U);
  EXPECT_TRUE(stream_.head().segments.empty());
  commit(stream_.intent(8));
  commit(stream_.trim(8));
  EXPECT_EQ(stream_.head().first_step, Step(7));
  stream_.commit(stream_.batch("a"));
  stream_.seal("a");
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().trims, 3U);
  EXPECT_EQ(counts().intents, 3U);
  EXPECT_EQ(counts().skips, 2U);
  EXPECT_EQ(stream_.history().skipped_by(Step(1)), Slot(9));
  EXPECT_EQ(stream_.history().skipped_by(Step(2)), std::nullopt);
}

TEST_F(EditRulesTest, TrimmedObjectsMayGoAndThenBeOverwritten) {
  const std::string batch = store::data_key(stream_.history().entries()[1].object());
  const std::string segment = store::segment_key(stream_.head().segments[0][0].name());
  commit(stream_.intent(2));
  commit(stream_.trim(2));
  for (const std::string& key : {batch, segment}) {
    stream_.remove(key);
    stream_.put(key, to_bytes("a late put"));
    stream_.remove(key);
  }
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().trimmed_batches_removed, 2U);
  EXPECT_EQ(counts().orphaned_batches_removed, 0U);
}

TEST_F(EditRulesTest, AnIntentMayBeReplacedAndWithdrawn) {
  commit(stream_.intent(3));
  commit(stream_.intent(5));
  stream_.commit(stream_.batch("a"));
  commit(stream_.edit(), [](Head& next) { next.trim_intent.reset(); });
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().intents, 2U);
  EXPECT_EQ(counts().withdrawals, 1U);
  EXPECT_EQ(counts().trims, 0U);
}

TEST_F(EditRulesTest, AStreamEndsAndIsReopened) {
  commit(stream_.edit(), [](Head& next) { next.ended = true; });
  stream_.commit(stream_.fence("a"));
  commit(stream_.edit(), [](Head& next) { next.ended = false; });
  stream_.commit(stream_.batch("a"));
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().ends, 1U);
  EXPECT_EQ(counts().reopenings, 1U);
  EXPECT_TRUE(stream_.history().slot(Slot(9))->ended);
  EXPECT_FALSE(stream_.history().slot(Slot(11))->ended);
}

TEST_F(EditRulesTest, ATopologyHoldsFromTheNextStepOn) {
  commit_topology(3);
  commit_topology(2);
  commit(stream_.batch("a"), [](Head& next) { next.tail.back().ranks = 2; });
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().topologies, 2U);
  EXPECT_EQ(stream_.history().slot(Slot(10))->ranks, 2U);
  // A trim leaves the one that holds.
  commit_topology(3);
  commit(stream_.intent(8));
  commit(stream_.trim(8));
  EXPECT_EQ(stream_.head().topologies.size(), 1U);
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(EditRulesTest, AMembershipHoldsFromAStepThatIsNotCommitted) {
  stream_.commit(stream_.membership("a", 7, 1));
  stream_.commit(stream_.membership("a", 9, 2));
  stream_.commit(stream_.membership("a", 9, 3));
  stream_.commit(stream_.membership("a", 8, 2));
  commit(stream_.edit(), [](Head& next) { next.memberships.pop_back(); });
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().memberships, 5U);
  EXPECT_EQ(counts().replaced_memberships, 2U);
  EXPECT_EQ(stream_.history().slot(Slot(11))->memberships.size(), 2U);
  // A trim leaves those that hold, and those that will.
  for (int i = 0; i < 2; ++i) stream_.commit(stream_.batch("a"));
  commit(stream_.intent(8));
  commit(stream_.trim(8));
  EXPECT_EQ(stream_.head().memberships.size(), 1U);
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(counts().memberships, 5U) << "a trim sets none";
}

TEST_F(EditRulesTest, I15NoMembershipOfACommittedStepChanges) {
  stream_.commit(stream_.membership("a", 6, 1));
  EXPECT_TRUE(stream_.breaks_only("I15", "a membership of a step below 7 changed"));
}

TEST_F(EditRulesTest, I15ATrimLeavesTheMembershipsThatAreNeeded) {
  stream_.commit(stream_.membership("a", 7, 1));
  commit(stream_.intent(4));
  commit(stream_.trim(4), [](Head& next) { next.memberships.clear(); });
  EXPECT_TRUE(stream_.breaks_only("I15", "a trim to 4 leaves other memberships than"));
}

TEST_F(EditRulesTest, I8AMembershipIsSetInTheTermOfItsProducer) {
  commit(stream_.membership("a", 7, 0), [](Head& next) {
    next.memberships[0].ref.reset();
    next.memberships[0].term = store::Term(1);
  });
  EXPECT_TRUE(stream_.breaks_only("I8", "set in term 1 of a, which is not its term"));
  stream_.violations() = {};
  commit(stream_.membership("a", 8, 0), [](Head& next) {
    next.memberships[1].ref.reset();
    next.memberships[1].producer = "z";
  });
  EXPECT_TRUE(stream_.breaks_only("I8", "the membership from step 8 was set in term 2 of z"));
}

TEST_F(EditRulesTest, I8AnEventSetsOneMembership) {
  commit(stream_.membership("a", 7, 0), [](Head& next) {
    next.memberships[0].ref.reset();
    next.memberships.push_back(next.memberships[0]);
    next.memberships[1].from_step = Step(9);
  });
  EXPECT_TRUE(stream_.breaks_only("I8", "memberships of 2 steps changed"));
}

TEST_F(EditRulesTest, I11TheFirstStepNeverFalls) {
  commit(stream_.intent(6));
  commit(stream_.trim(6));
  commit(stream_.intent(7));
  commit(stream_.trim(6), [](Head& next) { next.first_step = Step(5); });
  EXPECT_TRUE(stream_.breaks_only("I11", "slot 12: the first step fell from 6 to 5"));
}

TEST_F(EditRulesTest, I11AProducerDoesNotMoveTheFirstStep) {
  commit(stream_.intent(2));
  commit(stream_.batch("a"), [](Head& next) { next.first_step = Step(1); });
  EXPECT_TRUE(stream_.breaks_only("I11", "the first step was moved by producer a"));
}

TEST_F(EditRulesTest, I12AProducerDoesNotChangeAnIntent) {
  commit(stream_.intent(2));
  commit(stream_.batch("a"), [](Head& next) { next.trim_intent.reset(); });
  EXPECT_TRUE(stream_.breaks_only("I12", "an intent was changed by producer a"));
}

TEST_F(EditRulesTest, I15AProducerChangesNoEvent) {
  const std::pair<std::function<void(Head&)>, const char*> spoils[] = {
      {[](Head& next) { next.ended = true; }, "ended or reopened by producer a"},
      {[](Head& next) { next.skipped.emplace_back(3); }, "what is skipped was changed by producer"},
      {[](Head& next) { add_topology(next, 0); }, "the topology was changed by producer a"},
      {[](Head& next) {
         next.memberships.push_back({.from_step = Step(9),
                                     .digest = {},
                                     .producer = "a",
                                     .term = store::Term(2),
                                     .inline_keys = {},
                                     .ref = {}});
       },
       "memberships were changed by producer a"}};
  for (const auto& [spoil, reason] : spoils) {
    HandmadeStream stream;
    stream.commit(stream.fence("a"));
    for (int i = 0; i < 4; ++i) stream.commit(stream.batch("a"));
    Head next = stream.fence("a");
    if (std::string_view(reason).starts_with("the topology")) {
      next.topologies.push_back({next.next_step, 1, "dp=1"});
    } else {
      spoil(next);
    }
    stream.commit(next);
    EXPECT_TRUE(stream.breaks_only("I15", reason));
  }
}

TEST_F(EditRulesTest, I12TheFirstStepRisesByAnnouncementOnly) {
  commit(stream_.edit(), [](Head& next) { next.first_step = Step(1); });
  EXPECT_TRUE(stream_.breaks_only("I12", "the first step rose from 0 to 1, but no intent went"));
}

TEST_F(EditRulesTest, I12TheIntentGoesWithItsTrim) {
  commit(stream_.intent(2));
  commit(stream_.edit(), [](Head& next) { next.first_step = Step(1); });
  EXPECT_TRUE(stream_.breaks_only("I12", "the first step rose from 0 to 1, but no intent went"));
}

TEST_F(EditRulesTest, I12ATrimEndsWhereItWasAnnounced) {
  commit(stream_.intent(2));
  commit(stream_.trim(3));
  EXPECT_TRUE(
      stream_.breaks_only("I12", "the first step rose to 3, but a trim to 2 was announced"));
}

TEST_F(EditRulesTest, I12AnIntentIsOfItsSlot) {
  commit(stream_.intent(2), [](Head& next) { next.trim_intent->slot = Slot(7); });
  EXPECT_TRUE(stream_.breaks_only("I12", "slot 9: a trim is announced as if by slot 7"));
}

TEST_F(EditRulesTest, I3ATrimDropsNoEntryThatIsNeeded) {
  commit(stream_.intent(6));
  commit(stream_.trim(6), [&](Head& next) {
    next.tail.clear();
    next.segments = stream_.head().segments;
    next.segments[0].erase(next.segments[0].begin());
    next.segments[0][0].first_step = Step(2);
  });
  EXPECT_EQ(stream_.violations().texts().at(0),
            "I3: slot 10: a trim to 6 leaves other entries than what ends above it");
}

TEST_F(EditRulesTest, I3ATrimLeavesNoEntryThatIsNotNeeded) {
  commit(stream_.intent(6));
  commit(stream_.trim(6), [&](Head& next) { next.tail = stream_.head().tail; });
  EXPECT_TRUE(stream_.breaks_only("I3", "a trim to 6 leaves other entries than"));
}

TEST_F(EditRulesTest, I3ATrimLeavesTheSegmentsThatAreNeeded) {
  commit(stream_.intent(3));
  commit(stream_.trim(3), [&](Head& next) { next.segments = stream_.head().segments; });
  EXPECT_TRUE(stream_.breaks_only("I3", "a trim to 3 leaves other segments than"));
}

TEST_F(EditRulesTest, I15ATrimLeavesTheSkipsAndTopologiesThatAreNeeded) {
  commit_skip(5);
  commit_topology(2);
  commit(stream_.intent(3));
  commit(stream_.trim(3), [](Head& next) { next.skipped.clear(); });
  EXPECT_TRUE(stream_.breaks_only("I15", "a trim to 3 leaves other SKIPs than"));
  stream_.violations() = {};
  commit(stream_.intent(4));
  commit(stream_.trim(4), [](Head& next) { next.topologies.clear(); });
  EXPECT_TRUE(stream_.breaks_only("I15", "a trim to 4 leaves other topologies than"));
}

TEST_F(EditRulesTest, I15AnEventSkipsOneMoreStep) {
  commit(stream_.edit(), [](Head& next) { next.skipped = {Step(1), Step(3)}; });
  EXPECT_TRUE(stream_.breaks_only("I15", "something else than one more step"));
  stream_.violations() = {};
  commit(stream_.edit(), [](Head& next) { next.skipped = {Step(1), Step(4)}; });
  EXPECT_TRUE(stream_.breaks_only("I15", "something else than one more step"));
  stream_.violations() = {};
  commit(stream_.edit(), [](Head& next) { next.skipped.pop_back(); });
  EXPECT_TRUE(stream_.breaks_only("I15", "something else than one more step"));
}

TEST_F(EditRulesTest, I15NoTopologyOfStepsThatAreThereChanges) {
  commit(stream_.edit(), [](Head& next) { next.topologies = {{Step(3), 1, "dp=1"}}; });
  EXPECT_TRUE(stream_.breaks_only("I15", "a topology of a step below 7 changed"));
}

TEST_F(EditRulesTest, I15NothingIsAppendedToAnEndedStream) {
  commit(stream_.edit(), [](Head& next) { next.ended = true; });
  stream_.commit(stream_.batch("a"));
  EXPECT_TRUE(stream_.breaks_only("I15", "step 7 was appended to an ended stream"));
}

TEST_F(EditRulesTest, I15WhatIsAppendedIsForTheTopologyThatHolds) {
  commit_topology(2);
  commit(stream_.batch("a"), [](Head& next) { next.tail.back().ranks = 1; });
  EXPECT_TRUE(stream_.breaks_only("I15", "step 7 is for 1 ranks, the topology has 2"));
}

TEST_F(EditRulesTest, I8ASlotByNobodyDoesOneThing) {
  const std::function<void(Head&)> spoils[] = {
      [](Head& next) { next.skipped.emplace_back(3); },
      [](Head& next) { add_topology(next, 1); },
      [](Head& next) { next.tail.clear(), next.next_step = Step(4); },
      [](Head& next) { next.segments.pop_back(); },
      [](Head& next) { next.find_producer("a")->finished = true; },
  };
  for (const auto& spoil : spoils) {
    Head next = stream_.edit();
    next.ended = true;
    spoil(next);
    Violations violations;
    check_edit(stream_.head(), next, violations);
    ASSERT_FALSE(violations.empty());
    EXPECT_TRUE(violations.texts().front().ends_with("changes more than one thing"))
        << violations.texts().front();
  }
}

TEST_F(EditRulesTest, I8ASlotByNobodyDoesSomething) {
  commit(stream_.edit());
  EXPECT_TRUE(stream_.breaks_only("I8", "slot 9: written by nobody, and changes nothing"));
}

}  // namespace
}  // namespace batchloom::simulator
