// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/reclaimer.h"

#include <algorithm>

#include "batchloom/store/floor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

class Reclaim : public StoreTest {
 protected:
  ReclaimReport run(const Stream& stream) { return Reclaimer(stream).run({}).value(); }
  ReclaimReport run() { return run(*stream_); }
  void put(const std::string& key) {
    ASSERT_TRUE(objstore::put_bytes(memory_, key, as_bytes("x"), objstore::PutCondition::none(), {})
                    .is_ok());
  }
  std::string put_state(const std::string& producer, Term term, Seq seq) {
    const std::string key = data_key({DataKind::kState, producer, term, seq, Nonce(77)});
    put(key);
    return key;
  }
  std::string put_data(const DataName& name) {
    put(data_key(name));
    return data_key(name);
  }
  /// So many that they stand beside.
  static void set_keys(ProducerSession& session, Step from_step, std::uint64_t digest) {
    const auto set = session.set_membership({.from_step = from_step,
                                             .digest = {.high = 0, .low = digest},
                                             .keys = Bytes(100, std::byte{5})},
                                            {});
    ASSERT_TRUE(set.is_ok()) << set.status().to_string();
  }
  std::string newest_membership_key() {
    return data_key(newest(*other_)->head.memberships.back().object());
  }
  std::string put_segment(Slot slot, std::uint32_t level = 0) {
    const std::string key = segment_key({slot, level, Nonce(77)});
    put(key);
    return key;
  }
  std::size_t first_request(Operation operation, std::string_view prefix) {
    const auto& requests = objects_.requests();
    return static_cast<std::size_t>(std::ranges::find_if(requests,
                                                         [&](const Request& request) {
                                                           return request.operation == operation &&
                                                                  request.key.starts_with(prefix);
                                                         }) -
                                    requests.begin());
  }
  void expect_whole(std::size_t entries) {
    const auto content = read_whole_stream(*other_);
    ASSERT_TRUE(content.is_ok()) << content.status().to_string();
    EXPECT_EQ(content->entries.size(), entries);
  }
};

TEST_F(Reclaim, ANewStreamHasNothingToRemove) {
  const ReclaimReport report = run();
  EXPECT_EQ(report.floor, Slot(0));
  EXPECT_EQ(report.removed(), 0u);
  EXPECT_EQ(objects_.count(Operation::kPut) + objects_.count(Operation::kRemove), 0u);
}

TEST_F(Reclaim, AFullStoreFirstLosesWhatNeedsNoCommit) {
  append_slots(*other_, 9);
  run();
  append_slots(*other_, 9);
  const std::string orphan = put_state("nobody", Term(1), Seq(0));
  put(manifest_key(Slot(2)));  // Below the floor: a stalled writer made it again.
  // The disk stays full, whatever is removed.
  objects_.next({.operation = Operation::kPut, .answer = Answer::kDiskFull, .times = 1000});
  const auto full = Reclaimer(*stream_).run({});
  EXPECT_TRUE(full.is(ErrorKind::kExhausted)) << full.status().to_string();
  EXPECT_NE(
      full.status().message().find("after 1 slots, 0 segments, 0 batch objects, 1 states and 0 "
                                   "memberships"),
      std::string::npos)
      << full.status().to_string();
  EXPECT_FALSE(exists(orphan));
  EXPECT_FALSE(exists(manifest_key(Slot(2))));
  EXPECT_EQ(read_floor(*other_, {}).value(), Slot(6)) << "as it was";
  objects_.forget_script();
  expect_whole(0);
}

TEST_F(Reclaim, RoomThatWasMadeLetsThePassGoOn) {
  append_slots(*other_, 9);
  const std::string orphan = put_state("nobody", Term(1), Seq(0));
  objects_.next({.operation = Operation::kPut, .answer = Answer::kDiskFull});
  const ReclaimReport report = run();
  EXPECT_EQ(report.floor, Slot(6));
  EXPECT_EQ(report.slots_removed, 6u);
  EXPECT_EQ(report.states_removed, 1u);
  EXPECT_FALSE(exists(orphan));
}

TEST_F(Reclaim, KeepsTheNewestSlots) {
  append_slots(*other_, 9);
  const ReclaimReport report = run();
  EXPECT_EQ(report.floor, Slot(6));
  EXPECT_EQ(report.slots_removed, 6u);
  EXPECT_EQ(counted("store_reclaimed_slots"), 6u);
  EXPECT_EQ(read_floor(*other_, {}).value(), Slot(6));
  EXPECT_EQ(keys("m/").size(), 4u);
  EXPECT_EQ(keys("m/").front(), manifest_key(Slot(7)));
  EXPECT_EQ(run().slots_removed, 0u);
}

TEST_F(Reclaim, OneSlotIsEnoughToGoOnFrom) {
  Limits limits = tiny_limits();
  limits.slots_kept = 1;
  const auto greedy = open_stream({.limits = limits, .safeguards = {}});
  append_slots(*other_, 3);
  EXPECT_EQ(run(*greedy).floor, Slot(3));
  EXPECT_EQ(keys("m/"), std::vector{manifest_key(Slot(4))});
  append_slots(*other_, 1);
  expect_whole(0);
}

TEST_F(Reclaim, WhoKeepsMoreSlotsFindsTheFloorAsItIs) {
  append_slots(*other_, 9);
  run();
  Limits limits = tiny_limits();
  limits.slots_kept = 8;
  const auto careful = open_stream({.limits = limits, .safeguards = {}});
  EXPECT_EQ(Reclaimer(*careful).run({.dry_run = true}, {})->floor, Slot(6));
  EXPECT_EQ(run(*careful).floor, Slot(6));
}

TEST_F(Reclaim, RaisesTheFloorBeforeItRemovesSlots) {
  append_slots(*other_, 9);
  run();
  EXPECT_LT(first_request(Operation::kPut, "gc/floor"), first_request(Operation::kRemove, "m/"));
}

TEST_F(Reclaim, WithoutTheFloorNothingIsRemoved) {
  append_slots(*other_, 9);
  objects_.next({.operation = Operation::kPut, .prefix = "gc/", .answer = Answer::kForbidden});
  EXPECT_TRUE(Reclaimer(*stream_).run({}).is(ErrorKind::kInvalid));
  EXPECT_EQ(keys("m/").size(), 10u);
  EXPECT_EQ(objects_.count(Operation::kRemove), 0u);
}

TEST_F(Reclaim, SweepsDeadSlotsThatCameBack) {
  append_slots(*other_, 9);
  run();
  for (const std::uint64_t slot : {2U, 6U}) put(manifest_key(Slot(slot)));
  EXPECT_EQ(run().slots_removed, 2u);
  EXPECT_EQ(keys("m/").front(), manifest_key(Slot(7)));
}

TEST_F(Reclaim, LeavesForeignNamesAlone) {
  append_slots(*other_, 9);
  const std::vector<std::string> foreign = {"m/readme", "s/readme", "d/00/readme",
                                            "m/00000000000000000001.bak"};
  for (const std::string& key : foreign) put(key);
  run();
  for (const std::string& key : foreign) EXPECT_TRUE(exists(key)) << key;
}

TEST_F(Reclaim, KeepsEverySegmentThatIsReferredTo) {
  const auto session = open_session(*other_, "p");
  commit_batches(*session, Seq(0), 40);
  const auto before = keys("s/");
  EXPECT_GE(newest(*other_)->head.segments.size(), 3u);
  EXPECT_EQ(run().segments_removed, 0u);
  EXPECT_EQ(keys("s/"), before);
  expect_whole(40);
}

TEST_F(Reclaim, RemovesSegmentsOfLostRacesOnly) {
  const auto session = open_session(*other_, "p");
  commit_batches(*session, Seq(0), 12);
  const Slot slot = newest(*other_)->head.slot;
  const std::string decided = put_segment(slot);
  const std::string decided_parent = put_segment(slot - 1, 1);
  const std::string in_flight = put_segment(slot + 1);
  EXPECT_EQ(run().segments_removed, 2u);
  EXPECT_FALSE(exists(decided));
  EXPECT_FALSE(exists(decided_parent));
  EXPECT_TRUE(exists(in_flight));
  append_slots(*other_, 1);
  EXPECT_EQ(run().segments_removed, 1u);
  EXPECT_FALSE(exists(in_flight)) << "its slot went to another";
  expect_whole(12);
}

TEST_F(Reclaim, AfterARealLostRaceOneSegmentGoes) {
  const auto session = open_session(*stream_, "p");
  commit_batches(*session, Seq(0), 3);
  const auto rival = open_session(*other_, "q");
  objects_.next({.operation = Operation::kPut, .prefix = "m/", .before = [&] {
                   commit_batches(*rival, Seq(0));
                 }});
  commit_batches(*session, Seq(3), 1);
  const auto before = keys("s/").size();
  EXPECT_EQ(run().segments_removed, 1u);
  EXPECT_EQ(keys("s/").size(), before - 1);
  expect_whole(5);
}

TEST_F(Reclaim, KeepsStatesThatARowNamesOrMayYetName) {
  const auto session = open_session(*other_, "p");
  ASSERT_TRUE(
      session->commit(std::array{upload_batch(*session, Seq(0), "a large state")}, {}).is_ok());
  const std::string named = data_key(newest(*other_)->head.producers[0].state_object());
  const std::string in_flight = put_state("p", session->term(), Seq(1));
  const std::string settled = put_state("p", session->term(), Seq(0));
  EXPECT_EQ(run().states_removed, 1u);
  EXPECT_TRUE(exists(named));
  EXPECT_TRUE(exists(in_flight));
  EXPECT_FALSE(exists(settled));
  const auto next = open_session(*other_, "p");
  EXPECT_EQ(run().states_removed, 1u);
  EXPECT_FALSE(exists(in_flight)) << "of a term that is over";
  EXPECT_TRUE(exists(named)) << "carried over by the fence";
  ASSERT_TRUE(next->commit(std::array{upload_batch(*next, Seq(1), "small")}, {}).is_ok());
  EXPECT_EQ(run().states_removed, 1u);
  EXPECT_FALSE(exists(named));
  EXPECT_EQ(counted("store_reclaimed_states"), 3u);
  expect_whole(2);
}

TEST_F(Reclaim, StatesOfProducersWithoutARowGo) {
  const std::string orphan = put_state("nobody", Term(1), Seq(5));
  EXPECT_EQ(run().states_removed, 1u);
  EXPECT_FALSE(exists(orphan));
}

TEST_F(Reclaim, KeepsMembershipKeysThatARowNamesOrMayYetName) {
  const auto session = open_session(*other_, "p");
  set_keys(*session, Step(0), 1);
  const std::string replaced = newest_membership_key();
  set_keys(*session, Step(0), 2);
  const std::string named = newest_membership_key();
  const std::string in_flight =
      put_data({DataKind::kMembership, "p", session->term(), Seq(1), Nonce(77)});
  EXPECT_EQ(run().memberships_removed, 0u) << "batch 0 is still next";
  commit_batches(*session, Seq(0));
  EXPECT_EQ(run().memberships_removed, 1u);
  EXPECT_FALSE(exists(replaced));
  EXPECT_TRUE(exists(named));
  EXPECT_TRUE(exists(in_flight));
  open_session(*other_, "p");
  EXPECT_EQ(run().memberships_removed, 1u);
  EXPECT_FALSE(exists(in_flight)) << "of a term that is over";
  EXPECT_TRUE(exists(named)) << "its row is there";
  EXPECT_EQ(counted("store_reclaimed_memberships"), 2u);
  expect_whole(1);
}

TEST_F(Reclaim, MembershipKeysGoOnceLaterOnesHoldAtTheFirstStep) {
  const auto session = open_session(*other_, "p");
  set_keys(*session, Step(0), 1);
  const std::string first = newest_membership_key();
  commit_batches(*session, Seq(0), 4);
  set_keys(*session, Step(4), 2);
  const std::string second = newest_membership_key();
  commit_batches(*session, Seq(4), 4);
  ASSERT_TRUE(pin_step(*other_, {.group = "g", .id = "a", .step = Step(3)}, {}).is_ok());
  EXPECT_EQ(run().memberships_removed, 0u);
  ASSERT_TRUE(pin_step(*other_, {.group = "g", .id = "b", .step = Step(4)}, {}).is_ok());
  ASSERT_TRUE(unpin(*other_, "g", "a", {}).is_ok());
  EXPECT_EQ(run().memberships_removed, 1u);
  EXPECT_FALSE(exists(first));
  EXPECT_TRUE(exists(second));
}

TEST_F(Reclaim, MembershipKeysOutliveTheRowOfTheirProducer) {
  Limits limits = tiny_limits();
  limits.producer_bytes = 150;
  const auto narrow = Stream::open(other_deps(), {.limits = limits, .safeguards = {}}, {}).value();
  const auto session = open_session(*narrow, "p");
  set_keys(*session, Step(0), 1);
  const std::string named = newest_membership_key();
  const std::string orphan =
      put_data({DataKind::kMembership, "p", session->term(), Seq(0), Nonce(77)});
  ASSERT_TRUE(session->finish({}).is_ok());
  EXPECT_EQ(run().memberships_removed, 0u);
  open_session(*narrow, "q");
  ASSERT_EQ(newest(*other_)->head.find_producer("p"), nullptr);
  EXPECT_EQ(run().memberships_removed, 1u);
  EXPECT_FALSE(exists(orphan));
  EXPECT_TRUE(exists(named));
  expect_whole(0);
}

TEST_F(Reclaim, ListsBeforeItReadsTheHeadThatDecides) {
  const auto session = open_session(*other_, "p");
  ASSERT_TRUE(
      session->commit(std::array{upload_batch(*session, Seq(0), "a large state")}, {}).is_ok());
  // Fence, upload and commit of another all happen after the listing began.
  objects_.next(
      {.operation = Operation::kList, .prefix = "d/", .before = [this] {
         const auto late = open_session(*other_, "late");
         ASSERT_TRUE(
             late->commit(std::array{upload_batch(*late, Seq(0), "its state")}, {}).is_ok());
       }});
  EXPECT_EQ(run().states_removed, 0u);
  expect_whole(2);
}

TEST_F(Reclaim, EachBrokenSafeguardRemovesWhatIsNeeded) {
  const auto session = open_session(*other_, "p");
  set_keys(*session, Step(0), 1);
  const std::string keys_named = newest_membership_key();
  ASSERT_TRUE(
      session->commit(std::array{upload_batch(*session, Seq(0), "a large state")}, {}).is_ok());
  const std::string named = data_key(newest(*other_)->head.producers[0].state_object());
  const std::string in_flight = put_segment(newest(*other_)->head.slot + 1);
  const auto without = [this](Safeguard safeguard) {
    return run(
        *open_stream({.limits = tiny_limits(), .safeguards = {.broken = safeguard, .on_use = {}}}));
  };
  EXPECT_EQ(without(Safeguard::kSegmentProof).segments_removed, 1u);
  EXPECT_FALSE(exists(in_flight));
  EXPECT_EQ(without(Safeguard::kStateRef).states_removed, 1u);
  EXPECT_FALSE(exists(named));
  EXPECT_EQ(without(Safeguard::kMembershipRef).memberships_removed, 1u);
  EXPECT_FALSE(exists(keys_named));
  objects_.next(
      {.operation = Operation::kList, .prefix = "s/", .before = [this] {
         const auto late = open_session(*other_, "late");
         ASSERT_TRUE(
             late->commit(std::array{upload_batch(*late, Seq(0), "its state")}, {}).is_ok());
       }});
  EXPECT_EQ(without(Safeguard::kListBeforeHead).states_removed, 1u) << "no row names it yet";
}

TEST_F(Reclaim, RemovalsThatFailAreNotCounted) {
  append_slots(*other_, 9);
  objects_.next({.operation = Operation::kRemove, .prefix = "m/", .answer = Answer::kDamaged});
  EXPECT_EQ(run().slots_removed, 5u);
  EXPECT_EQ(counted("store_reclaimed_slots"), 5u);
  put_segment(Slot(1));
  put_segment(Slot(2));
  objects_.next({.operation = Operation::kRemove, .prefix = "s/", .answer = Answer::kDamaged});
  EXPECT_EQ(run().segments_removed, 1u);
}

TEST_F(Reclaim, StoppedAtAnyRequestItLeavesAWholeStream) {
  const auto session = open_session(*other_, "p");
  Seq next(0);
  for (std::size_t number = 0;; ++number) {
    SCOPED_TRACE(testing::Message() << "request " << number);
    ASSERT_TRUE(
        session->commit(std::array{upload_batch(*session, next, "a large state")}, {}).is_ok());
    ++next;
    put_segment(newest(*other_)->head.slot);
    objects_.forget_requests();
    objects_.answer_request(number, Answer::kForbidden);
    const auto report = Reclaimer(*stream_).run({});
    expect_whole(next.value);
    if (report.is_ok()) break;
    EXPECT_TRUE(report.is(ErrorKind::kInvalid));
  }
  EXPECT_GE(objects_.requests().size(), 10u);
  EXPECT_LE(keys("m/").size(), 4u);
}

}  // namespace
}  // namespace batchloom::store
