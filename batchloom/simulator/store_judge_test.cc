// SPDX-License-Identifier: Apache-2.0
// For each thing that a process can be told: a right one, and the wrong ones that the judge finds.
#include "batchloom/simulator/store_judge.h"

#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/simulator/handmade_stream_testing.h"
#include "batchloom/simulator/membership_keys.h"
#include "batchloom/simulator/source_state.h"
#include "batchloom/store/stream.h"

namespace batchloom::simulator {
namespace {

using store::Entry;
using store::Head;
using store::Nonce;
using store::PendingBatch;
using store::ProducerSession;
using store::Seq;
using store::Slot;
using store::Step;
using store::StoredHead;
using store::Term;

/// A history in which `a` has fenced at slot 2, committed `records` records at slot 3 as step 0,
/// and fenced again at slot 4.
struct Told {
  explicit Told(std::uint64_t records = 5) {
    stream.commit(stream.fence("a"));
    stream.commit(stream.batch("a", records));
    stream.commit(stream.fence("a"));
  }

  HandmadeStream stream;
  StoreJudge judge{stream.history(), stream.violations()};
};

/// Real sessions on a real stream: what the protocol tells in the same situation as in Told.
class RealStream {
 public:
  std::unique_ptr<ProducerSession> open() {
    return ProducerSession::open(*stream_, "a", {}).value();
  }
  /// Commits one batch, with the state of a source that goes on at `next_record`.
  static void commit(ProducerSession& session, std::uint64_t next_record) {
    const store::BatchInfo info{.seq = session.next_seq(), .steps = 1, .ranks = 1, .run_table = {}};
    const ByteSpan part = as_bytes("body");
    PendingBatch batch = session.upload(info, std::span(&part, 1), {}).value();
    batch.state_after = encode_source_state(next_record, 0);
    ASSERT_TRUE(session.commit(std::span(&batch, 1), {}).is_ok());
  }

 private:
  std::unique_ptr<store::Stream> make() {
    const store::StreamDeps deps{*runtime_, objects_, counters_};
    EXPECT_TRUE(store::init_stream(deps, "test", {}).is_ok());
    return store::Stream::open(deps, {}, {}).value();
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::MemoryStore objects_{*runtime_};
  Counters counters_;
  std::unique_ptr<store::Stream> stream_ = make();
};

/// The second session of `a`: of slot 4, after one batch with the state 5.
std::unique_ptr<ProducerSession> second_session(RealStream& real) {
  RealStream::commit(*real.open(), 5);
  return real.open();
}

TEST(StoreJudge, ASessionBeginsWhereItsPredecessorEnded) {
  RealStream real;
  const auto session = second_session(real);
  ASSERT_EQ(session->term(), Term(4));
  Told told;
  told.judge.session_opened(*session);
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, I6ASessionIsToldTheNextBatch) {
  RealStream real;
  const auto session = second_session(real);
  Told told;
  Head next = told.stream.next("a");
  told.stream.add_batch(next, {.producer = "a", .from = 5, .to = 5});
  told.stream.commit(next);
  ASSERT_TRUE(told.stream.is_right());
  told.judge.session_opened(*session);
  EXPECT_TRUE(told.stream.breaks_only("I6", "term 4: told to go on at batch 1, but 2 is next"));
}

TEST(StoreJudge, I8ASessionOwnsATermThatItFenced) {
  RealStream real;
  const auto session = second_session(real);
  HandmadeStream stream;
  StoreJudge(stream.history(), stream.violations()).session_opened(*session);
  EXPECT_TRUE(stream.breaks_only("I8", "told to own term 4, which is not its fence"));
}

TEST(StoreJudge, I7ASessionIsToldTheLastState) {
  RealStream real;
  const auto session = second_session(real);
  Told told(7);
  told.judge.session_opened(*session);
  EXPECT_TRUE(told.stream.breaks_only("I7", "term 4: told to go on at record 5, but 7 is next"));
}

TEST(StoreJudge, WhatAFencedSessionIsToldDoesNotMatter) {
  RealStream real;
  const auto session = second_session(real);
  Told told(7);
  told.stream.commit(told.stream.fence("a"));
  told.judge.session_opened(*session);
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, AReceiptIsForWhatIsPublished) {
  Told told;
  const Nonce nonce = told.stream.history().entries()[0].nonce;
  const PendingBatch batch{.seq = Seq(0), .nonce = nonce, .run_table = {}, .state_after = {}};
  const std::span batches(&batch, 1);
  told.judge.committed("a", Term(2), batches, {.slot = Slot(4), .next_step = Step(1)});
  told.judge.committed("a", Term(2), {}, {.slot = Slot(3), .next_step = Step(1)});
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, I9AReceiptNamesNoStepThatIsNotThere) {
  Told told;
  told.judge.committed("a", Term(2), {}, {.slot = Slot(3), .next_step = Step(2)});
  EXPECT_TRUE(told.stream.breaks_only("I9", "a receipt names next step 2, it is 1"));
}

TEST(StoreJudge, I9AReceiptNamesACommittedSlot) {
  Told told;
  told.judge.committed("a", Term(2), {}, {.slot = Slot(5), .next_step = Step(1)});
  EXPECT_TRUE(told.stream.breaks_only("I9", "a receipt names slot 5, the newest is 4"));
}

TEST(StoreJudge, I9AnAcknowledgedBatchIsPublishedAsUploaded) {
  struct Case {
    Term term;
    Seq seq;
    bool other_object;
  };
  for (const Case& wrong :
       {Case{Term(2), Seq(0), true}, Case{Term(2), Seq(1), false}, Case{Term(4), Seq(0), false}}) {
    Told told;
    PendingBatch batch;
    batch.seq = wrong.seq;
    batch.nonce = told.stream.history().entries()[0].nonce;
    if (wrong.other_object) ++batch.nonce;
    told.judge.committed("a", wrong.term, std::span(&batch, 1),
                         {.slot = Slot(4), .next_step = Step(1)});
    EXPECT_TRUE(told.stream.breaks_only("I9", "was acknowledged, but is not published"));
  }
}

/// The head of `slot` as committed, without its content.
StoredHead head_of(const Told& told, std::uint64_t slot) {
  StoredHead head;
  head.head.slot = Slot(slot);
  head.crc = told.stream.crc_of(Slot(slot));
  return head;
}

TEST(StoreJudge, AReaderIsGivenANewHead) {
  Told told;
  told.judge.head_read(head_of(told, 4), Slot(4), Slot(4));
  told.judge.head_read(head_of(told, 3), Slot(2), Slot(3));
  told.judge.head_read(head_of(told, 3), Slot(3), Slot(0));
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, I2AReaderIsGivenACommittedHead) {
  Told told;
  StoredHead head = head_of(told, 3);
  head.crc ^= 1;
  told.judge.head_read(head, Slot(1), Slot(1));
  EXPECT_TRUE(told.stream.breaks_only("I2", "slot 3, which was never committed so"));
}

TEST(StoreJudge, I2AReaderIsNotGivenAHeadThatNobodyCommitted) {
  Told told;
  told.judge.head_read(head_of(told, 5), Slot(1), Slot(1));
  EXPECT_TRUE(told.stream.breaks_only("I2", "slot 5, which was never committed so"));
}

TEST(StoreJudge, I2AReaderIsNotGivenAnOldHead) {
  Told told;
  told.judge.head_read(head_of(told, 3), Slot(4), Slot(1));
  EXPECT_TRUE(told.stream.breaks_only("I2", "slot 3 after slots 4 and 1"));
}

TEST(StoreJudge, I2AReadersHeadsNeverGoBack) {
  Told told;
  told.judge.head_read(head_of(told, 3), Slot(1), Slot(4));
  EXPECT_TRUE(told.stream.breaks_only("I2", "slot 3 after slots 1 and 4"));
}

TEST(StoreJudge, AProcessMayEndForItsOwnReasonsAndItsRivals) {
  Told told;
  for (const ErrorKind kind : {ErrorKind::kUnavailable, ErrorKind::kUnknownOutcome,
                               ErrorKind::kCancelled, ErrorKind::kFenced, ErrorKind::kExhausted})
    told.judge.process_ended("p", {kind, "text"}, false);
  told.judge.process_ended("p", Status::corruption("text"), true);
  told.judge.process_ended("p", Status::invalid("text"), true);
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, I13AProcessIsNotToldOfDamageThatThereIsNot) {
  for (const ErrorKind kind : {ErrorKind::kCorruption, ErrorKind::kInvalid, ErrorKind::kNotFound,
                               ErrorKind::kConflict, ErrorKind::kInternal}) {
    Told told;
    told.judge.process_ended("p", {kind, "text"}, false);
    EXPECT_TRUE(told.stream.breaks_only("I13", "process p ended with"));
  }
  Told told;
  told.judge.process_ended("p", Status::internal("text"), true);
  EXPECT_TRUE(told.stream.breaks_only("I13", "process p ended with internal: text"));
}

/// A right history whose slots 6 to 8 have ended, and 9 on have 2 ranks; slot 10 is a batch.
struct ToldOfEvents : Told {
  ToldOfEvents() {
    stream.commit(stream.batch("a"));
    end(true);
    stream.commit(stream.fence("a"));
    end(false);
    Head topology = stream.edit();
    topology.topologies = {{topology.next_step, 2, "dp=2"}};
    stream.commit(topology);
    Head next = stream.batch("a");
    next.tail.back().ranks = 2;
    stream.commit(next);
  }
  void end(bool ended) {
    Head next = stream.edit();
    next.ended = ended;
    stream.commit(next);
  }
};

TEST(StoreJudge, ACommitMayBeRefusedWhileTheStreamDoesNotTakeIt) {
  ToldOfEvents told;
  for (const std::uint64_t slot : {1U, 5U, 7U})
    told.judge.commit_refused("a", 2, Slot(slot), false);
  for (const std::uint64_t slot : {6U, 8U, 10U})
    told.judge.commit_refused("a", 1, Slot(slot), false);
  told.judge.commit_refused("a", 2, Slot(8), true);
  EXPECT_TRUE(told.stream.is_right());
  EXPECT_EQ(told.judge.counts().refused_commits, 7U);
}

TEST(StoreJudge, I15ACommitIsNotRefusedWithoutAReason) {
  ToldOfEvents told;
  told.judge.commit_refused("a", 2, Slot(8), false);
  EXPECT_TRUE(
      told.stream.breaks_only("I15", "batches for 2 ranks were refused, though from slot 8"));
}

/// A receipt that names a slot, as committed.
store::EditReceipt receipt_of(const Told& told, std::uint64_t slot) {
  return {.head = std::make_shared<const StoredHead>(head_of(told, slot)), .committed = true};
}

TEST(StoreJudge, AnAcknowledgedEventHasHappened) {
  ToldOfEvents told;
  told.judge.event_told({}, receipt_of(told, 3));
  told.judge.event_told({.ended = true}, receipt_of(told, 7));
  told.judge.event_told({.ended = false}, receipt_of(told, 8));
  told.judge.event_told({.ranks = 2}, receipt_of(told, 9));
  Head skip = told.stream.edit();
  skip.skipped = {Step(1)};
  told.stream.commit(skip);
  told.judge.event_told({.skipped = Step(1)}, receipt_of(told, 11));
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, I9AnEventIsNotAcknowledgedBeforeItHasHappened) {
  const std::pair<ToldEvent, std::uint64_t> wrong[] = {{{.ended = true}, 8},
                                                       {{.ended = false}, 6},
                                                       {{.ranks = 2}, 8},
                                                       {{.skipped = Step(1)}, 10},
                                                       {{.skipped = Step(0)}, 11}};
  for (const auto& [event, slot] : wrong) {
    ToldOfEvents told;
    Head skip = told.stream.edit();
    skip.skipped = {Step(1)};
    told.stream.commit(skip);
    told.judge.event_told(event, receipt_of(told, slot));
    EXPECT_TRUE(told.stream.breaks_only("I9", "an event was acknowledged with slot"));
  }
}

TEST(StoreJudge, I9AnEventIsAcknowledgedWithACommittedSlot) {
  Told told;
  store::EditReceipt receipt = receipt_of(told, 5);
  told.judge.event_told({}, receipt);
  EXPECT_TRUE(told.stream.breaks_only("I9", "with slot 5, which was never committed so"));
  told.stream.violations() = {};
  StoredHead other = head_of(told, 3);
  ++other.crc;
  receipt.head = std::make_shared<const StoredHead>(other);
  told.judge.event_told({}, receipt);
  EXPECT_TRUE(told.stream.breaks_only("I9", "with slot 3, which was never committed so"));
}

/// Keys with that digest, from `step` on.
store::Membership membership(std::uint64_t step, std::uint64_t keys) {
  const store::MembershipDigest digest{.high = 0, .low = keys};
  return {.from_step = Step(step), .digest = digest, .keys = membership_keys(digest)};
}

/// The same as Told; then slots 5 and 6 set the membership from steps 1 and 3 on, by the keys 1 and
/// 2, and slot 7 replaces the last by the keys 4.
struct ToldOfMemberships : Told {
  ToldOfMemberships() {
    stream.commit(stream.membership("a", 1, 1));
    stream.commit(stream.membership("a", 3, 2));
    stream.commit(stream.membership("a", 3, 4));
  }
};

TEST(StoreJudge, AnAcknowledgedMembershipHolds) {
  ToldOfMemberships told;
  told.judge.event_told({.membership = membership(1, 1)}, receipt_of(told, 5));
  told.judge.event_told({.membership = membership(3, 2)}, receipt_of(told, 6));
  told.judge.event_told({.membership = membership(3, 4)}, receipt_of(told, 7));
  EXPECT_TRUE(told.stream.is_right());
  told.judge.event_told({.membership = membership(3, 2)}, receipt_of(told, 7));
  EXPECT_TRUE(
      told.stream.breaks_only("I9", "slot 7, where other keys decide membership at step 3"));
  told.stream.violations() = {};
  told.judge.event_told({.membership = membership(0, 1)}, receipt_of(told, 5));
  EXPECT_TRUE(
      told.stream.breaks_only("I9", "slot 5, where other keys decide membership at step 0"));
}

TEST(StoreJudge, I15AMembershipIsRefusedOnlyForCommittedSteps) {
  Told told;
  told.judge.membership_refused(Step(0), false);
  told.judge.membership_refused(Step(1), true);
  EXPECT_TRUE(told.stream.is_right());
  told.judge.membership_refused(Step(1), false);
  EXPECT_TRUE(
      told.stream.breaks_only("I15", "a membership from step 1 on was refused, though 1 is next"));
  EXPECT_EQ(told.judge.counts().refused_memberships, 3U);
}

TEST(StoreJudge, AReaderIsGivenTheMembershipOfItsTime) {
  ToldOfMemberships told;
  told.judge.membership_read(Step(0), std::nullopt, Slot(1));
  told.judge.membership_read(Step(1), std::nullopt, Slot(4));
  told.judge.membership_read(Step(2), membership(1, 1), Slot(4));
  told.judge.membership_read(Step(9), membership(1, 1), Slot(5));
  told.judge.membership_read(Step(9), membership(3, 2), Slot(5));
  told.judge.membership_read(Step(3), membership(3, 4), Slot(7));
  told.stream.commit(told.stream.batch("a"));
  told.stream.commit(told.stream.intent(2));
  told.stream.commit(told.stream.trim(2));
  told.judge.membership_read(Step(0), std::nullopt, Slot(10));
  told.judge.membership_read(Step(1), membership(1, 1), Slot(10));  // Of the last step.
  EXPECT_TRUE(told.stream.is_right());
  EXPECT_EQ(told.judge.counts().memberships_read, 8U);
  told.judge.membership_read(Step(1), std::nullopt, Slot(10));
  EXPECT_TRUE(told.stream.breaks_only("I15", "was given a membership for step 1"));
}

TEST(StoreJudge, I15AReaderIsGivenNoOtherMembership) {
  struct Case {
    std::uint64_t step;
    std::optional<store::Membership> told;
    std::uint64_t newest_before;
  };
  store::Membership other_keys = membership(3, 4);
  other_keys.keys = to_bytes("other");
  for (const Case& wrong : std::vector<Case>{{1, std::nullopt, 5},
                                             {0, membership(1, 1), 1},
                                             {2, membership(2, 1), 5},
                                             {2, membership(1, 2), 5},
                                             {3, membership(1, 1), 6},
                                             {3, membership(3, 2), 7},
                                             {3, other_keys, 7}}) {
    ToldOfMemberships told;
    told.judge.membership_read(Step(wrong.step), wrong.told, Slot(wrong.newest_before));
    EXPECT_TRUE(told.stream.breaks_only("I15", "was given a membership for step"));
  }
}

TEST(StoreJudge, WhatIsTrimmedMaySoBeCalled) {
  Told told;
  told.stream.commit(told.stream.intent(1));
  told.stream.commit(told.stream.trim(1));
  told.judge.trimmed_told(Step(0));
  told.judge.pin_refused(Step(0));
  EXPECT_TRUE(told.stream.is_right());
  EXPECT_EQ(told.judge.counts().refused_pins, 1U);
  told.judge.trimmed_told(Step(1));
  EXPECT_TRUE(told.stream.breaks_only("I13", "told that step 1 is trimmed, but the stream begins"));
}

TEST(StoreJudge, I12APromiseIsKeptFromWhenItIsTold) {
  Told told;
  told.judge.pin_told(told.stream.pin(0));
  told.stream.put_cursor(0, 0);
  told.judge.cursor_told("g", Step(0));
  EXPECT_TRUE(told.stream.is_right());
  EXPECT_EQ(told.judge.counts().pins, 1U);
  told.stream.commit(told.stream.intent(1));
  told.stream.commit(told.stream.trim(1));
  EXPECT_TRUE(told.stream.breaks_only("I12", "keeps step 0, but the stream begins at 1"));
  EXPECT_EQ(told.stream.violations().texts().size(), 2U);
}

TEST(StoreJudge, EveryReaderFindsTheSameEntry) {
  Told told;
  Head pack = told.stream.batch("a");
  pack.tail.back().steps = 3;
  pack.next_step = Step(4);
  told.stream.commit(pack);
  const std::vector<Entry> entries = told.stream.history().entries();
  told.judge.entry_read(Step(0), entries[0]);
  for (const std::uint64_t step : {1U, 2U, 3U}) told.judge.entry_read(Step(step), entries[1]);
  EXPECT_TRUE(told.stream.is_right());
}

TEST(StoreJudge, I4AReaderIsNotGivenAnotherEntry) {
  struct Case {
    std::uint64_t step;
    std::size_t entry;
    bool changed;
  };
  for (const Case& wrong :
       {Case{0, 0, true}, Case{0, 1, false}, Case{1, 0, false}, Case{2, 1, false}}) {
    Told told;
    told.stream.commit(told.stream.batch("a"));
    Entry entry = told.stream.history().entries()[wrong.entry];
    if (wrong.changed) ++entry.nonce;
    told.judge.entry_read(Step(wrong.step), entry);
    EXPECT_TRUE(told.stream.breaks_only("I4", "given another entry for step"));
  }
}

TEST(StoreJudge, I4NoEntryIsReadBeforeAnythingIsPublished) {
  HandmadeStream empty;
  StoreJudge(empty.history(), empty.violations()).entry_read(Step(0), Entry());
  EXPECT_TRUE(empty.breaks_only("I4", "given another entry for step 0"));
}

}  // namespace
}  // namespace batchloom::simulator
