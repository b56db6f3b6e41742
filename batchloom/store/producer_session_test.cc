// SPDX-License-Identifier: Apache-2.0
// A session's life: fences, the state that it takes over, and its end. Commits are in
// session_commit_test.cc.
#include "batchloom/store/producer_session.h"

#include <fmt/format.h>

#include "batchloom/store/reclaimer.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

class SessionTest : public StoreTest {
 protected:
  void next_put(Answer answer, std::function<void()> before = {},
                std::function<void()> after = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = "m/",
                   .answer = answer,
                   .before = std::move(before),
                   .after = std::move(after)});
  }
  Result<std::unique_ptr<ProducerSession>> open(const std::string& name) {
    return ProducerSession::open(*stream_, name, {});
  }
  const ProducerRow* row(std::string_view name) {
    newest_ = newest(*other_);
    return newest_->head.find_producer(name);
  }
  /// Commits one batch with this state.
  void commit_state(ProducerSession& session, Seq seq, std::string_view state) {
    const auto receipt = session.commit(std::array{upload_batch(session, seq, state)}, {});
    ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
  }
  void expect_whole() {
    const auto content = read_whole_stream(*other_);
    EXPECT_TRUE(content.is_ok()) << content.status().to_string();
  }

  HeadPtr newest_;
};

TEST_F(SessionTest, OpensWithAFence) {
  const auto session = open_session(*stream_, "p");
  EXPECT_EQ(session->producer(), "p");
  EXPECT_EQ(session->term(), Term(2)) << "the slot of its fence";
  EXPECT_EQ(session->next_seq(), Seq(0));
  EXPECT_TRUE(session->state().empty());
  EXPECT_EQ(*row("p"), (ProducerRow{.producer = "p",
                                    .term = Term(2),
                                    .next_seq = Seq(0),
                                    .last_slot = Slot(2),
                                    .finished = false,
                                    .state = {}}));
  EXPECT_EQ(newest_->head.writer, (Writer{"p", Term(2)}));
  EXPECT_EQ(newest_->head.next_step, Step(0));
  EXPECT_EQ(counted("store_fences"), 1u);
}

TEST_F(SessionTest, BadNamesAreInvalidBeforeAnyRequest) {
  for (const std::string& name : {std::string(), std::string("P"), std::string("-p"),
                                  std::string("a.b"), std::string("a/b"), std::string(64, 'a')}) {
    EXPECT_TRUE(open(name).is(ErrorKind::kInvalid)) << name;
  }
  EXPECT_TRUE(objects_.requests().empty());
  EXPECT_TRUE(open(std::string(63, 'a')).is_ok());
}

TEST_F(SessionTest, ASecondFencesTheFirst) {
  const auto first = open_session(*stream_, "p");
  commit_batches(*first, Seq(0), 2);
  const auto second = open_session(*other_, "p");
  EXPECT_GT(second->term(), first->term());
  EXPECT_EQ(second->next_seq(), Seq(2));
  EXPECT_EQ(as_text(second->state()), "1");
  const auto late = first->commit(std::array{upload_batch(*first, Seq(2))}, {});
  EXPECT_TRUE(late.is(ErrorKind::kFenced)) << late.status().to_string();
  EXPECT_TRUE(first->finish({}).is(ErrorKind::kFenced));
  commit_batches(*second, Seq(2), 2);
  EXPECT_EQ(row("p")->next_seq, Seq(4));
  EXPECT_FALSE(row("p")->finished);
  expect_whole();
}

TEST_F(SessionTest, AFenceBetweenReadAndPutIsNoticed) {
  const auto first = open_session(*stream_, "p");
  std::unique_ptr<ProducerSession> second;
  next_put(Answer::kPass, [&] { second = open_session(*other_, "p"); });
  const auto late = first->commit(std::array{upload_batch(*first, Seq(0))}, {});
  EXPECT_TRUE(late.is(ErrorKind::kFenced)) << late.status().to_string();
  EXPECT_EQ(row("p")->next_seq, Seq(0));
}

TEST_F(SessionTest, AFenceWhoseReplyWasLostIsOurs) {
  next_put(Answer::kLostReply);
  EXPECT_EQ(open_session(*stream_, "p")->term(), Term(2));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2)) << "one fence is enough";
}

TEST_F(SessionTest, AFenceWhoseReplyWasLostAndThatIsNoLongerNewestIsRepeated) {
  next_put(Answer::kLostReply, {}, [this] { append_slots(*other_, 1); });
  const auto session = open_session(*stream_, "p");
  EXPECT_EQ(session->term(), Term(4));
  EXPECT_EQ(row("p")->term, Term(4));
  commit_batches(*session, Seq(0));
}

TEST_F(SessionTest, TwoThatFenceAtOnceHaveDifferentTerms) {
  std::unique_ptr<ProducerSession> other;
  next_put(Answer::kPass, [&] { other = open_session(*other_, "p"); });
  const auto session = open_session(*stream_, "p");
  EXPECT_EQ(other->term(), Term(2));
  EXPECT_EQ(session->term(), Term(3));
  EXPECT_TRUE(other->commit(std::array{upload_batch(*other, Seq(0))}, {}).is(ErrorKind::kFenced));
  commit_batches(*session, Seq(0));
}

TEST_F(SessionTest, AFenceThatEndsUnknownIsHarmless) {
  next_put(Answer::kLostReply, {}, [this] {
    objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = Answer::kForbidden});
  });
  EXPECT_TRUE(open("p").is(ErrorKind::kUnknownOutcome));
  EXPECT_EQ(row("p")->term, Term(2));
  EXPECT_EQ(open_session(*stream_, "p")->term(), Term(3));
}

TEST_F(SessionTest, SmallStatesStandInline) {
  const auto session = open_session(*stream_, "p");
  commit_state(*session, Seq(0), "12345678");
  EXPECT_EQ(as_text(row("p")->state.inline_bytes), "12345678");
  EXPECT_TRUE(keys("d/").size() == 1) << "only the batch";
  EXPECT_EQ(as_text(open_session(*stream_, "p")->state()), "12345678");
}

TEST_F(SessionTest, LargeStatesStandBeside) {
  const auto session = open_session(*stream_, "p");
  commit_state(*session, Seq(0), "123456789");
  ASSERT_TRUE(row("p")->state.ref);
  EXPECT_TRUE(row("p")->state.inline_bytes.empty());
  EXPECT_TRUE(exists(data_key(row("p")->state_object())));
  EXPECT_EQ(row("p")->state_object(),
            (DataName{DataKind::kState, "p", Term(2), Seq(0), row("p")->state.ref->nonce}));
  EXPECT_EQ(as_text(open_session(*stream_, "p")->state()), "123456789");
  commit_state(*open_session(*stream_, "p"), Seq(1), "small");
  EXPECT_FALSE(row("p")->state.ref);
  EXPECT_EQ(as_text(open_session(*stream_, "p")->state()), "small");
}

TEST_F(SessionTest, FencesCarryAStateBesideOver) {
  commit_state(*open_session(*stream_, "p"), Seq(0), "a state that is large");
  const DataName object = row("p")->state_object();
  for (int i = 0; i < 3; ++i) {
    const auto session = open_session(*stream_, "p");
    EXPECT_EQ(as_text(session->state()), "a state that is large");
    EXPECT_EQ(session->next_seq(), Seq(1));
    EXPECT_EQ(row("p")->state_object(), object) << "named after who wrote it";
  }
}

TEST_F(SessionTest, WhereTheInlineStatesOfOthersTakeTheRoomItStandsBeside) {
  Limits limits = tiny_limits();
  limits.inline_state_bytes = 12;
  const auto narrow = open_stream({.limits = limits, .safeguards = {}});
  commit_state(*open_session(*narrow, "p"), Seq(0), "12345678");
  commit_state(*open_session(*narrow, "q"), Seq(0), "12345");
  EXPECT_TRUE(row("q")->state.ref);
  commit_state(*open_session(*narrow, "q"), Seq(1), "1234");
  EXPECT_FALSE(row("q")->state.ref);
}

TEST_F(SessionTest, AMissingOrDamagedStateIsCorruption) {
  commit_state(*open_session(*stream_, "p"), Seq(0), "a state that is large");
  objects_.next(
      {.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged, .times = 3});
  EXPECT_TRUE(open("p").is(ErrorKind::kCorruption));
  const std::string key = data_key(row("p")->state_object());
  ASSERT_TRUE(memory_.remove(std::span(&key, 1), {}).is_ok());
  const auto session = open("p");
  EXPECT_TRUE(session.is(ErrorKind::kCorruption));
  EXPECT_NE(session.status().message().find(key), std::string::npos);
}

TEST_F(SessionTest, AFenceStandsAlsoWhereTheStateIsDamaged) {
  const auto first = open_session(*other_, "p");
  commit_state(*first, Seq(0), "a state that is large");
  const Slot slot = newest(*other_)->head.slot;
  objects_.next(
      {.operation = Operation::kGet, .prefix = "d/", .answer = Answer::kDamaged, .times = 3});
  const auto session = open("p");
  EXPECT_TRUE(session.is(ErrorKind::kCorruption));
  EXPECT_NE(session.status().message().find(
                fmt::format("producer p has its new term {}, but not its state", slot.value + 1)),
            std::string::npos)
      << session.status().to_string();
  EXPECT_EQ(newest(*other_)->head.slot, slot + 1);
  EXPECT_EQ(newest(*other_)->head.find_producer("p")->term, Term(slot.value + 1));
}

TEST_F(SessionTest, AStateThatASuccessorReplacedMeansFenced) {
  commit_state(*open_session(*stream_, "p"), Seq(0), "a state that is large");
  objects_.next({.operation = Operation::kGet, .prefix = "d/", .before = [this] {
                   commit_state(*open_session(*other_, "p"), Seq(1), "another large state");
                   Reclaimer(*other_).run({}).value();
                 }});
  const auto session = open("p");
  EXPECT_TRUE(session.is(ErrorKind::kFenced)) << session.status().to_string();
}

TEST_F(SessionTest, FinishMarksTheRow) {
  const auto session = open_session(*stream_, "p");
  commit_batches(*session, Seq(0), 2);
  EXPECT_TRUE(session->finish({}).is_ok());
  EXPECT_TRUE(row("p")->finished);
  const Slot slot = newest_->head.slot;
  EXPECT_TRUE(session->finish({}).is_ok()) << "true already";
  EXPECT_EQ(newest(*other_)->head.slot, slot);
  const auto again = open_session(*stream_, "p");
  EXPECT_FALSE(row("p")->finished);
  EXPECT_EQ(again->next_seq(), Seq(2));
  EXPECT_EQ(as_text(again->state()), "1");
}

TEST_F(SessionTest, NothingIsCommittedAfterFinish) {
  const auto session = open_session(*stream_, "p");
  ASSERT_TRUE(session->finish({}).is_ok());
  const auto late = session->commit(std::array{upload_batch(*session, Seq(0))}, {});
  EXPECT_TRUE(late.is(ErrorKind::kInvalid)) << late.status().to_string();
  EXPECT_EQ(row("p")->next_seq, Seq(0));
}

TEST_F(SessionTest, FinishSettlesALostReplyAndALostRace) {
  const auto first = open_session(*stream_, "p");
  next_put(Answer::kLostReply);
  EXPECT_TRUE(first->finish({}).is_ok());
  const auto second = open_session(*stream_, "q");
  next_put(Answer::kPass, [this] { append_slots(*other_, 1); });
  EXPECT_TRUE(second->finish({}).is_ok());
  EXPECT_TRUE(row("p")->finished && row("q")->finished);
}

TEST_F(SessionTest, RowsOfFinishedProducersMakeRoom) {
  ProducerRow some_row;
  some_row.producer = "p";
  Limits limits = tiny_limits();
  limits.producer_bytes = 2 * encoded_bound(some_row);
  const auto narrow = open_stream({.limits = limits, .safeguards = {}});
  const auto p = open_session(*narrow, "p");
  commit_batches(*p, Seq(0), 2);
  const auto q = open_session(*narrow, "q");
  EXPECT_TRUE(ProducerSession::open(*narrow, "r", {}).is(ErrorKind::kExhausted));
  EXPECT_EQ(row("r"), nullptr);
  ASSERT_TRUE(p->finish({}).is_ok());
  const auto r = open_session(*narrow, "r");
  EXPECT_EQ(row("p"), nullptr);
  EXPECT_FALSE(p->commit(std::array{upload_batch(*p, Seq(2))}, {}).is_ok());
  ASSERT_TRUE(q->finish({}).is_ok());
  const auto p2 = open_session(*narrow, "p");
  EXPECT_EQ(p2->next_seq(), Seq(0)) << "a row that was dropped is forgotten";
  EXPECT_TRUE(p2->state().empty());
  commit_batches(*p2, Seq(0), 2);
  expect_whole();
}

}  // namespace
}  // namespace batchloom::store
