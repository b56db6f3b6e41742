// SPDX-License-Identifier: Apache-2.0
// Verifying a stream that producers and reclaimers are at work on: what they do is no damage.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "batchloom/store/head_edit.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/trim.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What happens right after the listing: the floor is read then.
ScriptLine after_listing(std::function<void()> act) {
  return {.operation = Operation::kGet, .prefix = "gc/floor", .before = std::move(act)};
}

class VerifyAmidChanges : public StoreTest {
 protected:
  VerifyReport verify() {
    auto report = verify_stream(*stream_, VerifyDepth::kManifest, {});
    EXPECT_TRUE(report.is_ok()) << report.status().to_string();
    return std::move(report).value();
  }

  Bytes get(const std::string& key) { return memory_.get(key, {}, {}).value().value().bytes; }
  void put(const std::string& key, const Bytes& bytes) {
    ASSERT_TRUE(
        objstore::put_bytes(memory_, key, bytes, objstore::PutCondition::none(), {}).is_ok());
  }
  void remove(const std::string& key) {
    ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  }

  // What one listing shows of slots that were put while it went on: not these, but later ones.
  void list_without(std::initializer_list<Slot> slots) {
    std::vector<std::pair<std::string, Bytes>> missed;
    for (const Slot slot : slots) {
      missed.emplace_back(manifest_key(slot), get(manifest_key(slot)));
      remove(missed.back().first);
    }
    objects_.next(after_listing([this, missed] {
      for (const auto& [key, bytes] : missed) put(key, bytes);
    }));
  }

  void trim_to(Step step) {
    ManifestReader reader(*other_);
    const auto announce = [&](const Head& head) {
      return std::optional(propose_trim_intent(head, step));
    };
    const auto complete = [&](const Head& head) {
      return std::optional(complete_trim(head, step, {}));
    };
    ASSERT_TRUE(commit_edit(*other_, reader, announce, {}).is_ok());
    ASSERT_TRUE(commit_edit(*other_, reader, complete, {}).is_ok());
  }
  // The batches of "a", one a step.
  void remove_batches_below(Step step) {
    for (const std::string& key : keys(kDataPrefix)) {
      const DataName name = parse_data_key(key).value();
      if (name.kind == DataKind::kBatch && name.seq.value < step.value) remove(key);
    }
  }
  // Those that the newest head does not need.
  void remove_trimmed_segments() {
    std::vector<std::string> gone = keys(kSegmentPrefix);
    SegmentReader segments(*other_);
    const Status walked =
        segments.for_each_ref(newest(*other_)->head, {}, [&](const SegmentRef& ref) {
          std::erase(gone, segment_key(ref.name()));
          return Status::ok();
        });
    ASSERT_TRUE(walked.is_ok());
    for (const std::string& key : gone) remove(key);
  }

  // A session of "a" commits `count` batches whose states lie beside.
  void commit_with_states(const Stream& stream, std::uint64_t count) {
    const auto session = open_session(stream, "a");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::array batch = {upload_batch(*session, session->next_seq() + i, "a large state")};
      ASSERT_TRUE(session->commit(batch, {}).is_ok());
    }
  }
  // The key of the state that the newest head names.
  std::string state_key() {
    return data_key(newest(*other_)->head.find_producer("a")->state_object());
  }
  // A stream whose reclaimer removes orphans alone: no slot is old enough.
  std::unique_ptr<Stream> open_keeping_slots() {
    Limits limits = tiny_limits();
    limits.slots_kept = 1024;
    return Stream::open(other_deps(), {.limits = limits, .safeguards = {}}, {}).value();
  }
};

TEST_F(VerifyAmidChanges, LooksForSlotsThatTheListingMissed) {
  commit_batches(*open_session(*other_, "a"), Seq(0), 30);
  const Slot newest_slot = newest(*other_)->head.slot;
  list_without({Slot(1), newest_slot - 3, newest_slot - 2});
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.slots, newest_slot.value);
}

TEST_F(VerifyAmidChanges, ChecksSlotsThatTheListingMissed) {
  commit_batches(*open_session(*other_, "a"), Seq(0), 30);
  const Slot slot = newest(*other_)->head.slot - 2;
  put(manifest_key(slot), to_bytes("x"));
  list_without({slot});
  EXPECT_THAT(verify().problems, ElementsAre(HasSubstr(manifest_key(slot))));
}

TEST_F(VerifyAmidChanges, AsksForNoMoreThanOneSlotOfAGap) {
  put(manifest_key(Slot(1'000'000'000'000)), to_bytes("x"));
  EXPECT_THAT(verify().problems, ElementsAre(AllOf(HasSubstr(manifest_key(Slot(2))),
                                                   HasSubstr("missing, although slots")),
                                             HasSubstr(manifest_key(Slot(1'000'000'000'000)))));
  EXPECT_LT(objects_.count(Operation::kGet, "m/"), 10u);
}

TEST_F(VerifyAmidChanges, FindsASlotWhereTheFloorHasPassedAllThatWasListed) {
  commit_batches(*open_session(*other_, "a"), Seq(0), 3);
  objects_.next(after_listing([this] {
    append_slots(*other_, 10);
    ASSERT_TRUE(Reclaimer(*other_).run({}).is_ok());
  }));
  const VerifyReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.newest, report.floor + 1);
  EXPECT_EQ(report.entries, 3u);
}

TEST_F(VerifyAmidChanges, NeedsNoStateThatANewerHeadHasReplaced) {
  commit_with_states(*other_, 2);
  const std::string key = state_key();
  const auto keeping = open_keeping_slots();
  objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                   commit_with_states(*keeping, 1);
                   ASSERT_TRUE(Reclaimer(*keeping).run({}).is_ok());
                 }});
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_FALSE(exists(key));
}

TEST_F(VerifyAmidChanges, NeedsNoStateOfARowThatIsGone) {
  commit_with_states(*other_, 1);
  ASSERT_TRUE(open_session(*other_, "a")->finish({}).is_ok());
  const std::string key = state_key();
  objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                   // As a fence with a full table would.
                   const HeadPtr head = newest(*other_);
                   Head next = empty_successor(*other_, head->head);
                   next.previous_crc = head->crc;
                   next.producers.clear();
                   put_head(*other_, next);
                   ASSERT_TRUE(Reclaimer(*open_keeping_slots()).run({}).is_ok());
                 }});
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_FALSE(exists(key));
}

TEST_F(VerifyAmidChanges, NeedsNoMembershipKeysThatANewerHeadHasReplaced) {
  const auto session = open_session(*other_, "a");
  const auto set = [&](std::uint64_t digest) {
    ASSERT_TRUE(
        session
            ->set_membership(
                {.from_step = Step(5), .digest = {.high = 0, .low = digest}, .keys = Bytes(100)},
                {})
            .is_ok());
  };
  set(1);
  const std::string key = data_key(newest(*other_)->head.memberships[0].object());
  const auto keeping = open_keeping_slots();
  objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                   set(2);
                   commit_batches(*session, Seq(0), 1);
                   ASSERT_TRUE(Reclaimer(*keeping).run({}).is_ok());
                 }});
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_FALSE(exists(key));
}

TEST_F(VerifyAmidChanges, NeedsNothingThatIsTrimmedMeanwhile) {
  commit_batches(*open_session(*other_, "a"), Seq(0), 30);
  for (const Step step : {Step(7), Step(30)}) {
    remove_batches_below(step);  // As if they had been uploaded once their prefix was listed.
    objects_.next({.operation = Operation::kGet, .prefix = "s/", .before = [this, step] {
                     trim_to(step);
                     remove_trimmed_segments();
                   }});
    const VerifyReport report = verify();
    EXPECT_THAT(report.problems, IsEmpty()) << step.value;
    EXPECT_LT(report.entries, 30u) << "some segments should be missing";
    EXPECT_TRUE(objects_.script_is_done());
  }
}

TEST_F(VerifyAmidChanges, NeedsWhatIsNotTrimmedMeanwhile) {
  commit_batches(*open_session(*other_, "a"), Seq(0), 30);
  remove_batches_below(Step(8));
  objects_.next(
      {.operation = Operation::kGet, .prefix = "s/", .before = [this] { trim_to(Step(7)); }});
  EXPECT_THAT(verify().problems,
              ElementsAre(AllOf(HasSubstr(".tgb: missing"), HasSubstr("step 7 in"))));
  EXPECT_TRUE(objects_.script_is_done());
}

TEST_F(VerifyAmidChanges, NeedsTheStateThatANewerHeadStillNames) {
  commit_with_states(*other_, 1);
  const std::string key = state_key();
  objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                   open_session(*other_, "b");
                   remove(key);
                 }});
  EXPECT_THAT(verify().problems, ElementsAre(AllOf(HasSubstr(key), HasSubstr("missing, though"))));
}

TEST_F(VerifyAmidChanges, NeedsTheStateWhereTheNewestHeadIsDamaged) {
  commit_with_states(*other_, 1);
  const std::string key = state_key();
  objects_.next({.operation = Operation::kGet, .prefix = key, .before = [&] {
                   put(manifest_key(newest(*other_)->head.slot + 1), to_bytes("x"));
                   remove(key);
                 }});
  EXPECT_THAT(verify().problems, Contains(AllOf(HasSubstr(key), HasSubstr("missing, though"))));
}

}  // namespace
}  // namespace batchloom::store
