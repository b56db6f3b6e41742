// SPDX-License-Identifier: Apache-2.0
// Batch objects: which of them a pass removes, after trims and crashes.
#include <gmock/gmock.h>

#include "batchloom/store/reclaim_world_testing.h"
#include "batchloom/store/reclaimer.h"
#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class ReclaimBatches : public TrimTest {
 protected:
  ReclaimBatches() : TrimTest() {}
  explicit ReclaimBatches(const Limits& limits) : TrimTest(limits) {}

  ReclaimReport run(const Stream& stream, const ReclaimOptions& options = {}) {
    return Reclaimer(stream).run(options, {}).value();
  }
  ReclaimReport run() { return run(*stream_); }
  ReclaimReport run_without(Safeguard safeguard) {
    return run(
        *open_stream({.limits = tiny_limits(), .safeguards = {.broken = safeguard, .on_use = {}}}));
  }
  /// What a dry run names.
  std::vector<Removal> foretell(ReclaimOptions options = {}) {
    std::vector<Removal> removals;
    options.dry_run = true;
    options.on_removal = [&](const Removal& removal) { removals.push_back(removal); };
    run(*stream_, options);
    return removals;
  }
  std::string put_batch(const std::string& producer, Term term, Seq seq) {
    const std::string key = data_key({DataKind::kBatch, producer, term, seq, Nonce(77)});
    put(key, to_bytes("x"));
    return key;
  }
  /// The keys of the batch objects that the steps lie in.
  std::vector<std::string> batches_of(std::initializer_list<std::uint64_t> steps) {
    const HeadPtr head = newest(*other_);
    SegmentReader segments(*other_);
    std::vector<std::string> found;
    for (const std::uint64_t step : steps) {
      found.push_back(data_key(segments.find(head->head, Step(step), {}).value().object()));
    }
    return found;
  }
};

TEST_F(ReclaimBatches, WhatACommitMayYetNameStays) {
  const auto session = open_session(*other_, "p");
  upload_batch(*session, Seq(0));
  upload_batch(*session, Seq(1));
  EXPECT_EQ(run().batches_removed, 0u);
  const auto batch = upload_batch(*session, Seq(0));
  ASSERT_TRUE(session->commit(std::array{batch}, {}).is_ok());
  EXPECT_EQ(run().batches_removed, 1u) << "the other upload of batch 0";
  EXPECT_EQ(run().batches_removed, 0u);
  EXPECT_THAT(keys("d/"), SizeIs(2));
  EXPECT_EQ(counted("store_reclaimed_batches"), 1u);
}

TEST_F(ReclaimBatches, WhatAnOlderTermLeftGoes) {
  const auto session = open_session(*other_, "p");
  commit_batches(*session, Seq(0), 2);
  upload_batch(*session, Seq(2));
  EXPECT_EQ(run().batches_removed, 0u);
  const auto next = open_session(*other_, "p");
  upload_batch(*next, Seq(2));
  EXPECT_EQ(run().batches_removed, 1u);
  EXPECT_THAT(keys("d/"), SizeIs(3));
  expect_sound();
}

TEST_F(ReclaimBatches, WithoutARowItGoes) {
  const std::string orphan = put_batch("nobody", Term(1), Seq(5));
  EXPECT_EQ(run().batches_removed, 1u);
  EXPECT_FALSE(exists(orphan));
}

TEST_F(ReclaimBatches, ATermFromTheFutureStays) {
  commit_batches(*open_session(*other_, "p"), Seq(0), 2);
  const std::string later = put_batch("p", Term(1000), Seq(0));
  EXPECT_EQ(run().batches_removed, 0u);
  EXPECT_TRUE(exists(later));
}

/// A table of producers that holds one row.
class ReclaimDroppedRows : public ReclaimBatches {
 protected:
  static Limits one_row() {
    Limits limits = tiny_limits();
    limits.producer_bytes = 150;
    return limits;
  }
  ReclaimDroppedRows() : ReclaimBatches(one_row()) {}
};

TEST_F(ReclaimDroppedRows, WhatAFinishedProducerCommittedStays) {
  const auto session = open_session(*other_, "p");
  commit_batches(*session, Seq(0), 5);
  upload_batch(*session, Seq(5));
  ASSERT_TRUE(session->finish({}).is_ok());
  EXPECT_EQ(run().batches_removed, 0u) << "the row is still there";
  const auto other = open_session(*other_, "q");
  ASSERT_EQ(newest(*other_)->head.producers.size(), 1u);
  EXPECT_EQ(run().batches_removed, 1u);
  commit_batches(*other, Seq(0), 1);
  EXPECT_EQ(run().batches_removed, 0u);
  EXPECT_EQ(read_whole_stream(*other_).value().entries.size(), 6u);
}

TEST_F(ReclaimBatches, TrimmedOnesGoAndTheirSegments) {
  grow(40);
  const auto segments_before = keys("s/").size();
  pin(Step(25));
  const ReclaimReport report = run();
  EXPECT_EQ(report.first_step, Step(25));
  EXPECT_EQ(report.steps_trimmed, 25u);
  EXPECT_EQ(report.batches_removed, 25u);
  EXPECT_GT(report.segments_removed, 5u);
  EXPECT_EQ(keys("s/").size(), segments_before - report.segments_removed);
  EXPECT_THAT(keys("d/"), SizeIs(15));
  expect_sound();
  EXPECT_EQ(run().batches_removed, 0u);
}

TEST_F(ReclaimBatches, WithoutATrimAllStay) {
  grow(10);
  pin(Step(5));
  EXPECT_EQ(run(*stream_, {.trim = false}).batches_removed, 0u);
  EXPECT_EQ(first_step(), Step(0));
  EXPECT_EQ(objects_.count(Operation::kList, "pin/"), 0u);
}

TEST_F(ReclaimBatches, APackGoesWithItsLastStep) {
  grow(3, 4);
  const auto packs = batches_of({0, 4, 8});
  for (const std::uint64_t step : {3U, 5U, 7U, 8U}) {
    pin(Step(step));
    run();
    EXPECT_EQ(exists(packs[0]), step < 4) << step;
    EXPECT_EQ(exists(packs[1]), step < 8) << step;
    ASSERT_TRUE(unpin(*other_, "g", "a", {}).is_ok());
  }
  EXPECT_TRUE(exists(packs[2]));
  expect_sound();
}

TEST_F(ReclaimBatches, APackInASegmentGoesWithItsLastStep) {
  grow(12, 4);
  const auto packs = batches_of({4, 8, 12});
  pin(Step(9));
  EXPECT_EQ(run().batches_removed, 2u);
  EXPECT_FALSE(exists(packs[0]));
  EXPECT_TRUE(exists(packs[1]));
  expect_sound();
}

TEST_F(ReclaimBatches, WithoutPackTrimItGoesWithItsFirst) {
  grow(3, 4);
  const auto packs = batches_of({0, 4, 8});
  pin(Step(4));
  EXPECT_EQ(run_without(Safeguard::kPackTrim).batches_removed, 1u) << "no pack is cut";
  ASSERT_TRUE(unpin(*other_, "g", "a", {}).is_ok());
  pin(Step(5));
  EXPECT_EQ(run_without(Safeguard::kPackTrim).batches_removed, 1u);
  EXPECT_FALSE(exists(packs[1])) << "steps 5 to 7 are lost";
  EXPECT_TRUE(exists(packs[2]));
}

TEST_F(ReclaimBatches, ListsBeforeItReadsTheHeadThatDecides) {
  grow(2);
  const auto late = [this] { commit_batches(*open_session(*other_, "late"), Seq(0), 1); };
  before(1, Operation::kList, "d/", late);
  EXPECT_EQ(run().batches_removed, 0u);
  before(1, Operation::kList, "d/",
         [this] { commit_batches(*open_session(*other_, "later"), Seq(0), 1); });
  EXPECT_EQ(run_without(Safeguard::kListBeforeHead).batches_removed, 1u) << "no row names it yet";
}

TEST_F(ReclaimBatches, ReadsNoSegmentsWhereNothingCanGo) {
  grow(40);
  const auto all = keys("d/");
  ASSERT_TRUE(memory_.remove(all, {}).is_ok());  // As in a stream that is kept without batches.
  const auto session = open_session(*other_, "p");
  upload_batch(*session, session->next_seq());
  objects_.forget_requests();
  run();
  const std::size_t without = objects_.count(Operation::kGet, "s/");
  put_batch("p", Term(1), Seq(0));
  objects_.forget_requests();
  EXPECT_EQ(run().batches_removed, 1u);
  EXPECT_GT(objects_.count(Operation::kGet, "s/"), without + 10);
}

TEST_F(ReclaimBatches, SomethingDamagedUnderPinRemovesNothing) {
  grow(10);
  pin(Step(5));
  put_batch("nobody", Term(1), Seq(0));
  put("pin/g/x-00000000000000aa", to_bytes("x"));
  const auto before = keys("");
  const auto report = Reclaimer(*stream_).run({});
  EXPECT_TRUE(report.is(ErrorKind::kCorruption));
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("pin/g/x-00000000000000aa"));
  EXPECT_EQ(keys(""), before);
  EXPECT_TRUE(Reclaimer(*stream_).run({.dry_run = true}, {}).is(ErrorKind::kCorruption));
  EXPECT_GE(run(*stream_, {.trim = false}).batches_removed, 1u);
}

TEST_F(ReclaimBatches, AMissingSegmentRemovesNothing) {
  grow(40);
  const HeadPtr head = newest(*other_);
  const std::string gone = segment_key(head->head.segments[0].front().name());
  ASSERT_TRUE(memory_.remove(std::span(&gone, 1), {}).is_ok());
  put_batch("nobody", Term(1), Seq(0));
  const auto before = keys("d/");
  const auto report = Reclaimer(*stream_).run({});
  EXPECT_TRUE(report.is(ErrorKind::kCorruption));
  EXPECT_THAT(std::string(report.status().message()), HasSubstr(gone));
  EXPECT_EQ(keys("d/"), before);
}

TEST_F(ReclaimBatches, AnotherTrimsWhileItLooks) {
  grow(40);
  pin(Step(3));
  run();
  put_batch("nobody", Term(1), Seq(0));
  pin(Step(30), "b");
  before(1, Operation::kGet, "s/", [this] {
    ASSERT_TRUE(unpin(*other_, "g", "a", {}).is_ok());
    EXPECT_EQ(run(*other_).batches_removed, 28u);
  });
  const ReclaimReport report = run();
  EXPECT_EQ(report.first_step, Step(30));
  EXPECT_EQ(report.batches_removed, 0u) << "the other has removed all";
  expect_sound();
}

TEST_F(ReclaimBatches, RemovalsThatFailAreLeftToTheNextPass) {
  grow(3);
  pin(Step(2));
  objects_.next({.operation = Operation::kRemove, .prefix = "d/", .answer = Answer::kDamaged});
  const ReclaimReport report = run();
  EXPECT_EQ(report.batches_removed, 1u);
  EXPECT_EQ(report.failed, 1u);
  EXPECT_THAT(report.first_failure.message(), HasSubstr("removing d/"));
  EXPECT_EQ(counted("store_reclaimed_batches"), 1u);
  EXPECT_EQ(run().failed, 0u);
}

TEST_F(ReclaimBatches, SaysWhy) {
  const auto session = open_session(*other_, "p");
  commit_batches(*session, Seq(0), 2);
  const std::string again = put_batch("p", session->term(), Seq(1));
  const std::string nobodys = put_batch("nobody", Term(1), Seq(0));
  const Term old_term = session->term();
  EXPECT_THAT(foretell(),
              UnorderedElementsAre(
                  AllOf(Field(&Removal::kind, RemovalKind::kBatch), Field(&Removal::key, nobodys),
                        Field(&Removal::reason, "never committed: nobody has no row any more")),
                  AllOf(Field(&Removal::key, again),
                        Field(&Removal::reason,
                              "never committed: batch 1 of p is decided, and 2 is next"))));
  const Term term = open_session(*other_, "p")->term();
  pin(Step(1));
  std::vector<std::string> reasons;
  for (const Removal& removal : foretell()) {
    if (removal.kind == RemovalKind::kBatch) reasons.push_back(removal.reason);
  }
  std::ranges::sort(reasons);
  EXPECT_THAT(reasons,
              ElementsAre("never committed, or trimmed before: nobody has no row any more, and no "
                          "step from 1 on is in it",
                          HasSubstr("term " + std::to_string(old_term.value) +
                                    " of p was replaced by term " + std::to_string(term.value)),
                          "trimmed: steps below 1"));
}

TEST_F(ReclaimBatches, ARealPassTellsWhatItRemoved) {
  grow(20);
  pin(Step(9));
  std::vector<Removal> told;
  const ReclaimReport report =
      run(*stream_, {.on_removal = [&](const Removal& removal) { told.push_back(removal); }});
  EXPECT_EQ(told.size(), report.removed());
  for (const Removal& removal : told) EXPECT_FALSE(exists(removal.key)) << removal.key;
  EXPECT_THAT(told, Each(Field(&Removal::reason, testing::Not(IsEmpty()))));
}

// Whole worlds.

TEST(ReclaimWorlds, APassRemovesAllThatNobodyNeedsAndNothingElse) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReclaimWorld world(seed);
    world.act(45);
    ASSERT_TRUE(Reclaimer(world.other()).run({}).is_ok());
    std::set<std::string> left = world.keys("s/");
    left.merge(world.keys("d/"));
    EXPECT_EQ(left, world.needed());
  }
}

TEST(ReclaimWorlds, ADryRunTouchesNothingAndForetellsTheNextPass) {
  std::uint64_t trimmed = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReclaimWorld world(seed);
    world.act(45);
    ReclaimOptions options{.dry_run = true};
    std::set<std::string> foretold;
    std::set<std::string> removed;
    options.on_removal = [&](const Removal& removal) {
      EXPECT_TRUE(foretold.insert(removal.key).second) << removal.key << " twice";
    };
    const auto before = world.content();
    const ReclaimReport dry = Reclaimer(world.stream()).run(options, {}).value();
    EXPECT_EQ(world.content(), before);
    EXPECT_EQ(world.objects().count(Operation::kPut) + world.objects().count(Operation::kRemove),
              0u);
    options = {.on_removal = [&](const Removal& removal) { removed.insert(removal.key); }};
    const ReclaimReport wet = Reclaimer(world.other()).run(options, {}).value();
    EXPECT_EQ(foretold, removed);
    EXPECT_EQ(dry.floor, wet.floor);
    EXPECT_EQ(dry.first_step, wet.first_step);
    EXPECT_EQ(dry.steps_trimmed, wet.steps_trimmed);
    EXPECT_EQ(dry.slots_removed, wet.slots_removed);
    EXPECT_EQ(dry.segments_removed, wet.segments_removed);
    EXPECT_EQ(dry.batches_removed, wet.batches_removed);
    EXPECT_EQ(dry.states_removed, wet.states_removed);
    EXPECT_EQ(dry.memberships_removed, wet.memberships_removed);
    for (const std::string& key : foretold) EXPECT_TRUE(before.contains(key)) << key;
    trimmed += wet.steps_trimmed;
  }
  EXPECT_GT(trimmed, 200u) << "the worlds should have something to trim";
}

// Fails request after request of a pass; the next pass then ends where an undisturbed one does.
void stop_everywhere(std::uint64_t seed, Answer answer) {
  const auto end_of = [](ReclaimWorld& world) {
    std::set<std::string> left = world.keys("s/");
    left.merge(world.keys("d/"));
    left.merge(world.keys("pin/"));
    return std::pair(left, newest(world.other())->head.first_step);
  };
  ReclaimWorld undisturbed(seed);
  undisturbed.act(30);
  ASSERT_TRUE(Reclaimer(undisturbed.stream()).run({}).is_ok());
  const auto expected = end_of(undisturbed);
  const std::size_t requests = undisturbed.objects().requests().size();
  for (std::size_t number = 0; number <= requests; ++number) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", request " << number);
    ReclaimWorld world(seed);
    world.act(30);
    const auto needed = world.needed();
    world.objects().forget_requests();
    world.objects().answer_request(number, answer);
    static_cast<void>(Reclaimer(world.stream()).run({}));
    for (const std::string& key : world.needed()) EXPECT_TRUE(world.keys("").contains(key)) << key;
    ASSERT_TRUE(Reclaimer(world.other()).run({}).is_ok());
    EXPECT_EQ(end_of(world), expected);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ReclaimWorlds, StoppedAtAnyRequestTheNextPassEndsTheSame) {
  for (std::uint64_t seed = 200; seed < 206; ++seed) {
    for (const Answer answer : {Answer::kForbidden, Answer::kLostReply, Answer::kUnavailable}) {
      stop_everywhere(seed, answer);
    }
  }
}

}  // namespace
}  // namespace batchloom::store
