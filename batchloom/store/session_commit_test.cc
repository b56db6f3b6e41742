// SPDX-License-Identifier: Apache-2.0
// Commits: each batch once, in order, whatever becomes of requests and replies.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using std::chrono::milliseconds;

class Commit : public StoreTest {
 protected:
  void next_put(Answer answer, std::function<void()> before = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = "m/",
                   .answer = answer,
                   .before = std::move(before)});
  }
  std::vector<PendingBatch> upload(Seq first, std::size_t count, std::string_view state = "") {
    std::vector<PendingBatch> batches;
    for (std::size_t i = 0; i < count; ++i) {
      batches.push_back(upload_batch(*session_, first + i, state));
    }
    return batches;
  }
  /// The stream is whole and these are the numbers of p's entries: 0 to `count`.
  void expect_entries(std::size_t count) {
    const auto content = read_whole_stream(*other_);
    ASSERT_TRUE(content.is_ok()) << content.status().to_string();
    EXPECT_EQ(content->entries.size(), count);
  }
  Result<CommitReceipt> commit(const std::vector<PendingBatch>& batches,
                               const CallOptions& call = {}) {
    return session_->commit(batches, call);
  }

  std::unique_ptr<ProducerSession> session_ = open_session(*stream_, "p");
};

TEST_F(Commit, SaysWhatItDid) {
  const auto receipt = commit(upload(Seq(0), 2)).value();
  EXPECT_EQ(receipt.slot, Slot(3));
  EXPECT_EQ(receipt.next_step, Step(2));
  EXPECT_EQ(receipt.committed, 2u);
  EXPECT_EQ(receipt.dropped, 0u);
  expect_entries(2);
}

TEST_F(Commit, UploadPublishesNothing) {
  const auto batches = upload(Seq(0), 1);
  EXPECT_TRUE(
      exists(data_key({DataKind::kBatch, "p", session_->term(), Seq(0), batches[0].nonce})));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2));
}

TEST_F(Commit, MoreThanATailHoldsTakesSeveralSlots) {
  const auto receipt = commit(upload(Seq(0), 20)).value();
  EXPECT_EQ(receipt.committed, 20u);
  EXPECT_EQ(receipt.slot, Slot(2 + 7));
  EXPECT_EQ(newest(*other_)->head.tail.size(), 2u);
  EXPECT_GE(counted("store_seals_level_1"), 2u);
  expect_entries(20);
}

TEST_F(Commit, NothingIsDoneForNothing) {
  const auto receipt = commit({}).value();
  EXPECT_EQ(receipt.committed, 0u);
  EXPECT_EQ(receipt.slot, Slot(2));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2));
}

TEST_F(Commit, GapsAndRepeatsAreInvalid) {
  EXPECT_TRUE(commit(upload(Seq(1), 1)).is(ErrorKind::kInvalid));
  auto batches = upload(Seq(0), 2);
  std::swap(batches[0], batches[1]);
  EXPECT_TRUE(commit(batches).is(ErrorKind::kInvalid));
  batches[1].seq = batches[0].seq;
  EXPECT_TRUE(commit(batches).is(ErrorKind::kInvalid));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2));
}

TEST_F(Commit, WhatNoHeadCouldHoldIsInvalid) {
  const auto refused = [&](auto change) {
    auto batches = upload(Seq(0), 1);
    change(batches[0]);
    return commit(batches).is(ErrorKind::kInvalid);
  };
  EXPECT_TRUE(refused([](PendingBatch& batch) { batch.steps = 0; }));
  EXPECT_TRUE(refused([](PendingBatch& batch) {
    batch.ranks = 129;
    batch.run_table.resize(1);
  }));
  EXPECT_TRUE(refused([](PendingBatch& batch) {
    batch.ranks = 2;
    batch.run_table.resize(41);
  }));
  EXPECT_TRUE(refused([](PendingBatch& batch) {
    batch.ranks = 0;
    batch.run_table.resize(1);
  }));
  EXPECT_TRUE(refused([](PendingBatch& batch) {
    batch.ranks = 1;
    batch.run_table.resize(1 << 20);
  }));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2));
  auto batches = upload(Seq(0), 1);
  batches[0].run_table.resize(run_table_max_bytes(2, 1));
  EXPECT_TRUE(commit(batches).is_ok());
  expect_entries(1);
}

TEST_F(Commit, UploadRefusesThemAlready) {
  for (const BatchInfo& info : {BatchInfo{.seq = Seq(0), .steps = 0, .run_table = {}},
                                BatchInfo{.seq = Seq(0), .ranks = 2, .run_table = Bytes(41)}}) {
    EXPECT_TRUE(session_->upload(info, {}, {}).is(ErrorKind::kInvalid));
  }
  EXPECT_TRUE(keys("d/").empty());
}

TEST_F(Commit, AStateAboveTheLimitIsInvalid) {
  Limits limits = tiny_limits();
  limits.state_max_bytes = 100;
  const auto strict = open_stream({.limits = limits, .safeguards = {}});
  const auto session = open_session(*strict, "q");
  const std::string state(101, 's');
  EXPECT_TRUE(session->commit(std::array{upload_batch(*session, Seq(0), state)}, {})
                  .is(ErrorKind::kInvalid));
  EXPECT_TRUE(
      session->commit(std::array{upload_batch(*session, Seq(0), state.substr(1))}, {}).is_ok());
}

TEST_F(Commit, WhatIsCoveredIsDropped) {
  const auto batches = upload(Seq(0), 3);
  ASSERT_TRUE(commit(batches).is_ok());
  const auto again = commit(batches).value();
  EXPECT_EQ(again.committed, 0u);
  EXPECT_EQ(again.dropped, 3u);
  EXPECT_EQ(again.slot, Slot(3));
  expect_entries(3);
}

TEST_F(Commit, ALostReplyIsSettledWithinTheCall) {
  next_put(Answer::kLostReply);
  const auto receipt = commit(upload(Seq(0), 2)).value();
  EXPECT_EQ(receipt.dropped, 2u) << "by the earlier attempt of this very call";
  EXPECT_EQ(receipt.next_step, Step(2));
  expect_entries(2);
}

TEST_F(Commit, AnUnknownOutcomeIsSettledByTheNextCall) {
  for (const Answer answer : {Answer::kLostReply, Answer::kLostRequest}) {
    const Seq next = newest(*other_)->head.find_producer("p")->next_seq;
    const auto batches = upload(next, 2);
    next_put(answer);
    objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = Answer::kForbidden});
    EXPECT_TRUE(commit(batches).is(ErrorKind::kUnknownOutcome));
    const auto receipt = commit(batches).value();
    EXPECT_EQ(receipt.committed, answer == Answer::kLostRequest ? 2u : 0u);
    EXPECT_EQ(receipt.dropped, answer == Answer::kLostRequest ? 0u : 2u);
    expect_entries(next.value + 2);
  }
}

TEST_F(Commit, AnUnknownOutcomeMayBeRepeatedWithMore) {
  auto batches = upload(Seq(0), 2);
  next_put(Answer::kLostReply);
  objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = Answer::kForbidden});
  EXPECT_TRUE(commit(batches).is(ErrorKind::kUnknownOutcome));
  batches.push_back(upload_batch(*session_, Seq(2)));
  EXPECT_EQ(commit(batches).value().committed, 1u);
  expect_entries(3);
}

TEST_F(Commit, WhoGoesOnAfterAnUnknownThatLandedIsRight) {
  next_put(Answer::kLostReply);
  objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = Answer::kForbidden});
  EXPECT_TRUE(commit(upload(Seq(0), 2)).is(ErrorKind::kUnknownOutcome));
  EXPECT_EQ(commit(upload(Seq(2), 1)).value().committed, 1u);
  expect_entries(3);
}

TEST_F(Commit, APutThatArrivesMuchLaterChangesNothing) {
  const auto batches = upload(Seq(0), 2);
  const HeadPtr base = newest(*other_);
  next_put(Answer::kLostRequest);
  objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = Answer::kForbidden});
  EXPECT_TRUE(commit(batches).is(ErrorKind::kUnknownOutcome));
  EXPECT_EQ(commit(batches).value().committed, 2u);
  const auto late =
      objstore::put_bytes(memory_, manifest_key(Slot(3)), as_bytes("the delayed head"),
                          objstore::PutCondition::absent(), {});
  EXPECT_EQ(late->outcome, objstore::PutOutcome::kConditionFailed);
  expect_entries(2);
}

TEST_F(Commit, ALostRaceIsRebased) {
  const auto rival = open_session(*other_, "q");
  Seq next(0);
  for (int i = 0; i < 3; ++i) {
    next_put(Answer::kPass, [&] {
      commit_batches(*rival, next, 2);
      next = next + 2;
    });
  }
  const auto receipt = commit(upload(Seq(0), 2)).value();
  EXPECT_EQ(receipt.committed, 2u);
  EXPECT_EQ(receipt.next_step, Step(8));
  EXPECT_EQ(objects_.count(Operation::kPut, "d/"), 2u) << "losing a race repeats no upload";
  EXPECT_GE(counted("store_commit_lost_races"), 3u);
  expect_entries(8);
}

TEST_F(Commit, ALostRaceStoresNoStateAgain) {
  const auto rival = open_session(*other_, "q");
  next_put(Answer::kPass, [&] { commit_batches(*rival, Seq(0)); });
  ASSERT_TRUE(commit(upload(Seq(0), 1, "a state that is large")).is_ok());
  EXPECT_EQ(objects_.count(Operation::kPut, "d/"), 2u);
  EXPECT_EQ(as_text(open_session(*stream_, "p")->state()), "a state that is large");
}

TEST_F(Commit, ARebuiltBatchBringsItsOwnState) {
  next_put(Answer::kForbidden);
  EXPECT_TRUE(commit(upload(Seq(0), 1, "the first state")).is(ErrorKind::kInvalid));
  ASSERT_TRUE(commit(upload(Seq(0), 1, "the other state")).is_ok());
  EXPECT_EQ(as_text(open_session(*stream_, "p")->state()), "the other state");
}

TEST_F(Commit, AStateThatComesBackIsStoredAgain) {
  for (Seq seq(0); seq < Seq(6); ++seq) {
    const std::string_view state = seq.value % 2 == 0 ? "the same large state" : "small";
    ASSERT_TRUE(commit(upload(seq, 1, state)).is_ok());
    Reclaimer(*other_).run({}).value();
  }
  ASSERT_TRUE(commit(upload(Seq(6), 1, "the same large state")).is_ok());
  EXPECT_EQ(as_text(open_session(*stream_, "p")->state()), "the same large state");
  expect_entries(7);
}

TEST_F(Commit, ALostRaceForASealWritesItsOwnSegment) {
  ASSERT_TRUE(commit(upload(Seq(0), 3)).is_ok());
  const auto rival = open_session(*other_, "q");
  next_put(Answer::kPass, [&] { commit_batches(*rival, Seq(0)); });
  ASSERT_TRUE(commit(upload(Seq(3), 4)).is_ok());
  const auto segments = keys("s/");
  EXPECT_GE(segments.size(), 3u) << "one of them is an orphan";
  expect_entries(8);
}

TEST_F(Commit, PartOfItMayBePublishedBeforeAnError) {
  const auto batches = upload(Seq(0), 5);
  next_put(Answer::kPass);
  next_put(Answer::kDiskFull);
  EXPECT_TRUE(commit(batches).is(ErrorKind::kExhausted));
  expect_entries(3);
  EXPECT_EQ(commit(batches).value().dropped, 3u);
  expect_entries(5);
}

TEST_F(Commit, WithoutATermCheckOrADropRuleItWouldBeWrong) {
  for (const Safeguard broken : {Safeguard::kTermCheck, Safeguard::kDropRule}) {
    const auto unsafe =
        open_stream({.limits = tiny_limits(), .safeguards = {.broken = broken, .on_use = {}}});
    const std::string name = "x-" + std::string(to_string(broken));
    const auto zombie = open_session(*unsafe, name);
    const std::array batch = {upload_batch(*zombie, Seq(0))};
    ASSERT_TRUE(zombie->commit(batch, {}).is_ok());
    if (broken == Safeguard::kTermCheck) {
      open_session(*other_, name);
      EXPECT_TRUE(zombie->commit(std::array{upload_batch(*zombie, Seq(1))}, {}).is_ok());
    } else {
      EXPECT_TRUE(zombie->commit(batch, {}).is_ok());
      EXPECT_TRUE(read_whole_stream(*other_).is(ErrorKind::kCorruption));
    }
  }
}

/// One commit of two batches of a session, under any short script of the put's answers.
RC_GTEST_FIXTURE_PROP(Commit, AnyAnswersToThePutLeaveEachBatchOnce, ()) {
  const auto answers = *rc::gen::container<std::vector<Answer>>(
      rc::gen::element(Answer::kPass, Answer::kLostRequest, Answer::kLostReply, Answer::kConflict,
                       Answer::kUnavailable, Answer::kForbidden, Answer::kDiskFull));
  const auto rival = open_session(*other_, "q");
  Seq rival_next(0);
  for (const Answer answer : answers) {
    const bool interfere = *rc::gen::arbitrary<bool>();
    next_put(answer, [&, interfere] {
      if (!interfere) return;
      commit_batches(*rival, rival_next);
      ++rival_next;
    });
  }
  const auto batches = upload(Seq(0), 7, *rc::gen::element("small", "a state that is large"));
  Result<CommitReceipt> receipt = Status::unavailable("not tried");
  for (int tries = 0; !receipt.is_ok(); ++tries) {
    RC_ASSERT(tries < 1000);
    receipt = commit(batches, runtime_.within(milliseconds(500)));
  }
  RC_ASSERT(receipt->next_step == Step(7 + rival_next.value));
  const auto content = read_whole_stream(*other_);
  RC_ASSERT(content.is_ok());
  RC_ASSERT(content->entries.size() == 7 + rival_next.value);
  objects_.forget_script();
}

}  // namespace
}  // namespace batchloom::store
