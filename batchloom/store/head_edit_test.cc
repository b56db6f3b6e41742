// SPDX-License-Identifier: Apache-2.0
// Edits, with the end of the stream and trim intents as examples: whatever becomes of requests and
// replies, and whoever comes between.
#include "batchloom/store/head_edit.h"

#include "batchloom/store/event_proposal.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

class Edit : public StoreTest {
 protected:
  void next_put(Answer answer, std::function<void()> before = {},
                std::function<void()> after = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = "m/",
                   .answer = answer,
                   .before = std::move(before),
                   .after = std::move(after)});
  }
  void next_look(Answer answer) {
    objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = answer});
  }

  /// Ends the stream, and counts how often that is asked for.
  Result<EditReceipt> end() {
    return commit_edit(*stream_, reader_,
                       [this](const Head& head) -> Result<std::optional<Head>> {
                         ++asked_;
                         return propose_end(head);
                       },
                       {});
  }
  /// Never true already.
  Result<EditReceipt> announce(Step step) {
    return commit_edit(*stream_, reader_,
                       [&](const Head& head) -> Result<std::optional<Head>> {
                         ++asked_;
                         return std::optional(propose_trim_intent(head, step));
                       },
                       {});
  }

  ManifestReader reader_{*stream_};
  int asked_ = 0;
};

TEST_F(Edit, TakesTheNextSlotForNobody) {
  commit_batches(*open_session(*other_, "p"), Seq(0));
  const HeadPtr before = newest(*other_);
  const EditReceipt receipt = end().value();
  EXPECT_TRUE(receipt.committed);
  EXPECT_EQ(receipt.head->head, newest(*other_)->head);
  Head expected = successor(before->head);
  expected.ended = true;
  expected.writer = {};
  expected.previous_crc = before->crc;
  expected.txid = receipt.head->head.txid;
  EXPECT_EQ(receipt.head->head, expected);
  EXPECT_NE(expected.txid, before->head.txid);
  EXPECT_EQ(counted("store_edits"), 1u);
}

TEST_F(Edit, WritesNothingThatIsTrueAlready) {
  ASSERT_TRUE(end().value().committed);
  objects_.forget_requests();
  const EditReceipt again = end().value();
  EXPECT_FALSE(again.committed);
  EXPECT_EQ(again.head->head.slot, Slot(2));
  EXPECT_EQ(objects_.count(Operation::kPut), 0u);
  EXPECT_EQ(counted("store_edits"), 1u);
}

TEST_F(Edit, ItsOwnErrorEndsIt) {
  const auto refused = commit_edit(
      *stream_, reader_,
      [](const Head&) -> Result<std::optional<Head>> { return Status::exhausted("no room"); }, {});
  EXPECT_TRUE(refused.is(ErrorKind::kExhausted));
  EXPECT_EQ(objects_.count(Operation::kPut), 0u);
}

TEST_F(Edit, ALostRaceIsRebased) {
  const auto rival = open_session(*other_, "p");
  Seq next(0);
  for (int i = 0; i < 3; ++i) {
    next_put(Answer::kPass, [&] {
      commit_batches(*rival, next);
      ++next;
    });
  }
  const EditReceipt receipt = end().value();
  EXPECT_TRUE(receipt.committed);
  EXPECT_EQ(receipt.head->head.slot, Slot(6));
  EXPECT_EQ(receipt.head->head.next_step, Step(3)) << "what the rival did stays";
  EXPECT_EQ(asked_, 4);
}

TEST_F(Edit, WhereARivalMadeItTrueNothingIsLeftToDo) {
  next_put(Answer::kPass, [&] {
    ManifestReader reader(*other_);
    const auto edit = [](const Head& head) { return propose_end(head); };
    ASSERT_TRUE(commit_edit(*other_, reader, edit, {}).value().committed);
  });
  const EditReceipt receipt = end().value();
  EXPECT_FALSE(receipt.committed);
  EXPECT_EQ(receipt.head->head.slot, Slot(2));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2));
}

TEST_F(Edit, ALostReplyIsSettledWithinTheCall) {
  next_put(Answer::kLostReply);
  const EditReceipt receipt = announce(Step(5)).value();
  EXPECT_TRUE(receipt.committed);
  EXPECT_EQ(receipt.head->head.trim_intent->slot, receipt.head->head.slot);
  EXPECT_EQ(newest(*other_)->head.slot, Slot(2)) << "once is enough";
  EXPECT_EQ(asked_, 1);
}

TEST_F(Edit, ALostReplyThatOthersBuiltOnIsAskedAgain) {
  next_put(Answer::kLostReply, {}, [this] { append_slots(*other_, 1); });
  const EditReceipt ended = end().value();
  EXPECT_FALSE(ended.committed);
  EXPECT_TRUE(ended.head->head.ended);
  EXPECT_EQ(newest(*other_)->head.slot, Slot(3));
  next_put(Answer::kLostReply, {}, [this] { append_slots(*other_, 1); });
  const EditReceipt announced = announce(Step(5)).value();
  EXPECT_TRUE(announced.committed);
  EXPECT_EQ(announced.head->head.trim_intent, (TrimIntent{.step = Step(5), .slot = Slot(6)}));
}

TEST_F(Edit, AnUnknownOutcomeIsSettledByTheNextCall) {
  for (const Answer answer : {Answer::kLostReply, Answer::kLostRequest}) {
    ManifestReader reader(*other_);
    const auto reopen = [](const Head& head) { return propose_reopen(head); };
    ASSERT_TRUE(commit_edit(*other_, reader, reopen, {}).is_ok());
    const Slot slot = reader_.latest({}).value()->head.slot;
    next_put(answer);
    next_look(Answer::kForbidden);
    EXPECT_TRUE(end().is(ErrorKind::kUnknownOutcome));
    const EditReceipt receipt = end().value();
    EXPECT_EQ(receipt.committed, answer == Answer::kLostRequest);
    EXPECT_EQ(receipt.head->head.slot, slot + 1) << "once, either way";
    EXPECT_TRUE(newest(*other_)->head.ended);
  }
}

TEST_F(Edit, LastingErrorsMeanThatNothingWasWritten) {
  next_put(Answer::kForbidden);
  EXPECT_TRUE(end().is(ErrorKind::kInvalid));
  next_put(Answer::kDiskFull);
  EXPECT_TRUE(end().is(ErrorKind::kExhausted));
  EXPECT_EQ(newest(*other_)->head.slot, Slot(1));
}

TEST_F(Edit, ADeadSlotIsNotACommit) {
  next_put(Answer::kPass, [this] {
    append_slots(*other_, 8);
    remove_slots(*other_, Slot(5));
  });
  const EditReceipt receipt = end().value();
  EXPECT_TRUE(receipt.committed);
  EXPECT_EQ(receipt.head->head.slot, Slot(10));
  EXPECT_EQ(counted("store_commit_dead_slots"), 1u);
}

TEST_F(Edit, WhoSharesItsReaderMayBeAhead) {
  ASSERT_TRUE(reader_.latest({}).is_ok());
  // After the slot was created, and before the reader hears of it.
  objects_.next({.operation = Operation::kPut, .prefix = "m/", .after = [this] {
                   objects_.next(
                       {.operation = Operation::kGet, .prefix = "gc/floor", .after = [this] {
                          append_slots(*other_, 1);
                          ASSERT_TRUE(reader_.latest({}).is_ok());
                        }});
                 }});
  const EditReceipt receipt = end().value();
  EXPECT_TRUE(receipt.head->head.ended);
  EXPECT_EQ(receipt.head->head.slot, Slot(3));
}

}  // namespace
}  // namespace batchloom::store
