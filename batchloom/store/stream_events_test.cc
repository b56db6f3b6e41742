// SPDX-License-Identifier: Apache-2.0
// Events on a stream, and what producers may do before and after them.
#include "batchloom/store/stream_events.h"

#include <gmock/gmock.h>

#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

using objstore::Operation;
using testing::HasSubstr;
using testing::IsEmpty;

std::string message_of(const Status& status) {
  return std::string(status.message());
}

/// Producer "p" of `session_` plans for 2 ranks.
class Events : public StoreTest {
 protected:
  void next_put(Answer answer, std::function<void()> before = {}) {
    objects_.next({.operation = Operation::kPut,
                   .prefix = "m/",
                   .answer = answer,
                   .before = std::move(before)});
  }
  Result<CommitReceipt> append(Seq seq) {
    return session_->commit(std::array{upload_batch(*session_, seq)}, {});
  }
  Head newest_head() { return newest(*other_)->head; }
  /// Each slot is what one session, event or step of a trim may have made of the one before.
  void expect_sound() {
    const auto report = verify_stream(*other_, VerifyDepth::kManifest, {});
    ASSERT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_THAT(report->problems, IsEmpty());
  }

  std::unique_ptr<ProducerSession> session_ = open_session(*stream_, "p");
};

TEST_F(Events, AreCommittedOnce) {
  commit_batches(*session_, Seq(0), 3);
  const auto once_each = [&] {
    return std::vector{skip_step(*stream_, Step(1), {}).value(),
                       set_topology(*stream_, topology_of("dp=2 tp=4"), {}).value(),
                       end_stream(*stream_, {}).value()};
  };
  for (const EditReceipt& receipt : once_each()) EXPECT_TRUE(receipt.committed);
  const Head head = newest_head();
  EXPECT_EQ(head.skipped, std::vector{Step(1)});
  EXPECT_EQ(head.topologies, (std::vector<TopologyRow>{{Step(3), 2, "dp=2 tp=4"}}));
  EXPECT_TRUE(head.ended);
  EXPECT_EQ(head.writer, Writer());
  EXPECT_EQ(head.next_step, Step(3)) << "events take no step";
  for (const EditReceipt& receipt : once_each()) {
    EXPECT_FALSE(receipt.committed);
    EXPECT_EQ(receipt.head->head, head) << "which has them";
  }
  EXPECT_TRUE(reopen_stream(*stream_, {}).value().committed);
  EXPECT_FALSE(reopen_stream(*stream_, {}).value().committed);
  EXPECT_FALSE(newest_head().ended);
  expect_sound();
}

TEST_F(Events, ASkipNeedsAStepOfTheStream) {
  commit_batches(*session_, Seq(0), 3);
  const auto refused = skip_step(*stream_, Step(3), {});
  EXPECT_TRUE(refused.is(ErrorKind::kNotFound));
  EXPECT_THAT(message_of(refused.status()), HasSubstr("step 3 cannot be skipped"));
}

TEST_F(Events, NothingIsAppendedAfterTheEnd) {
  commit_batches(*session_, Seq(0), 3);
  ASSERT_TRUE(end_stream(*other_, {}).is_ok());
  const auto refused = append(Seq(3));
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(message_of(refused.status()), HasSubstr("ended before step 3; reopen it"));
  EXPECT_EQ(newest_head().next_step, Step(3));
  ASSERT_TRUE(reopen_stream(*other_, {}).is_ok());
  EXPECT_TRUE(append(Seq(3)).is_ok()) << "what it knew of the end is not believed";
  expect_sound();
}

TEST_F(Events, ARepeatedCommitIsToldWhatLandedBeforeTheEnd) {
  const std::array batch = {upload_batch(*session_, Seq(0))};
  next_put(Answer::kLostReply);
  objects_.next({.operation = Operation::kHead, .prefix = "m/", .answer = Answer::kForbidden});
  EXPECT_TRUE(session_->commit(batch, {}).is(ErrorKind::kUnknownOutcome));
  ASSERT_TRUE(end_stream(*other_, {}).is_ok());
  EXPECT_EQ(session_->commit(batch, {}).value().dropped, 1u);
  const std::array more = {batch[0], upload_batch(*session_, Seq(1))};
  EXPECT_TRUE(session_->commit(more, {}).is(ErrorKind::kInvalid));
}

TEST_F(Events, AnEndBetweenReadAndPutIsNoticed) {
  next_put(Answer::kPass, [this] { ASSERT_TRUE(end_stream(*other_, {}).is_ok()); });
  EXPECT_TRUE(append(Seq(0)).is(ErrorKind::kInvalid));
  EXPECT_EQ(newest_head().next_step, Step(0));
}

TEST_F(Events, AnEndedStreamCanBeFencedAndFinished) {
  ASSERT_TRUE(end_stream(*other_, {}).is_ok());
  EXPECT_TRUE(open_session(*stream_, "q")->finish({}).is_ok());
  EXPECT_TRUE(newest_head().ended);
  expect_sound();
}

TEST_F(Events, BatchesArePlannedForTheTopology) {
  commit_batches(*session_, Seq(0), 2);
  ASSERT_TRUE(set_topology(*other_, topology_of("dp=3 tp=2"), {}).is_ok());
  const auto refused = append(Seq(2));
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_THAT(message_of(refused.status()),
              HasSubstr("batch 2: planned for 2 HDP ranks, but the topology from step 2 on, "
                        "'dp=3 tp=2', has 3"));
  ASSERT_TRUE(set_topology(*other_, topology_of("dp=1 cp=2 pp=8"), {}).is_ok());
  EXPECT_TRUE(append(Seq(2)).is_ok()) << "what it knew of the topology is not believed";
  EXPECT_EQ(newest_head().topologies.size(), 1u) << "nothing was appended for the other one";
  expect_sound();
}

TEST_F(Events, ATopologyBetweenReadAndPutIsNoticed) {
  next_put(Answer::kPass,
           [this] { ASSERT_TRUE(set_topology(*other_, topology_of("dp=3"), {}).is_ok()); });
  EXPECT_TRUE(append(Seq(0)).is(ErrorKind::kInvalid));
  EXPECT_EQ(newest_head().next_step, Step(0));
}

TEST_F(Events, ATopologyOfTheSameRanksChangesNothingForProducers) {
  next_put(Answer::kPass,
           [this] { ASSERT_TRUE(set_topology(*other_, topology_of("dp=2 tp=8"), {}).is_ok()); });
  EXPECT_EQ(append(Seq(0)).value().committed, 1u);
  EXPECT_EQ(newest_head().topologies[0].from_step, Step(0));
  expect_sound();
}

TEST_F(Events, ASessionEndsTheStream) {
  commit_batches(*session_, Seq(0), 2);
  next_put(Answer::kLostReply);
  EXPECT_TRUE(session_->end_stream({}).is_ok());
  const Head head = newest_head();
  EXPECT_TRUE(head.ended);
  EXPECT_EQ(head.writer, Writer());
  EXPECT_TRUE(session_->end_stream({}).is_ok()) << "true already";
  EXPECT_EQ(newest_head().slot, head.slot);
  expect_sound();
}

TEST_F(Events, AFencedSessionDoesNot) {
  open_session(*other_, "p");
  EXPECT_TRUE(session_->end_stream({}).is(ErrorKind::kFenced));
  session_ = open_session(*stream_, "p");
  next_put(Answer::kPass, [this] { open_session(*other_, "p"); });
  EXPECT_TRUE(session_->end_stream({}).is(ErrorKind::kFenced)) << "fenced before its put";
  EXPECT_FALSE(newest_head().ended);
}

}  // namespace
}  // namespace batchloom::store
