// SPDX-License-Identifier: Apache-2.0
// What a consumer may be told, and one wrong answer for each check.
#include "batchloom/simulator/consumer_judge.h"

#include <gtest/gtest.h>

#include <functional>

#include "batchloom/simulator/batch_sample_testing.h"
#include "batchloom/simulator/handmade_stream_testing.h"

namespace batchloom::simulator {
namespace {

using client::StepBatch;
using model::HdpRank;
using store::Head;
using store::Slot;
using store::Step;

/// A stream of p0: batches 0 and 1, for 2 ranks, are the steps 0 to 3 (slots 3 and 4). Slot 5 skips
/// step 1, slot 6 skips step 3, and slot 7 ends the stream. A consumer of rank 1 is opened.
class ConsumerJudgeTest : public testing::Test {
 protected:
  ConsumerJudgeTest() {
    stream_.commit(stream_.fence("p0"));
    for (std::uint64_t seq = 0; seq < 2; ++seq) {
      Head next = stream_.batch("p0");
      next.tail.back().steps = next.tail.back().ranks = 2;
      next.next_step = next.next_step + 1;
      stream_.commit(next);
    }
    for (const std::uint64_t skipped : {1U, 3U}) {
      Head next = stream_.edit();
      next.skipped.emplace_back(skipped);
      stream_.commit(next);
    }
    Head end = stream_.edit();
    end.ended = true;
    stream_.commit(end);
    open(4);
  }

  void open(std::uint64_t opened_with, std::uint64_t min_slot = 0, std::uint32_t ranks = 0) {
    judge_.opened({.rank = HdpRank(1),
                   .ranks = ranks,
                   .min_slot = Slot(min_slot),
                   .opened_with = Slot(opened_with)},
                  {});
  }

  /// The step as rank 1 of `ranks` must get it.
  StepBatch batch(std::uint64_t step, std::uint32_t ranks = 2) const {
    return of_object(step / 2, step, ranks);
  }
  StepBatch of_object(std::uint64_t seq, std::uint64_t step, std::uint32_t ranks = 2) const {
    const SampleObject sample = make_sample(sources_, {"p0", seq, ranks});
    store::Run run = read_sample(sample, static_cast<std::uint32_t>(step % 2), HdpRank(1));
    StepBatch batch;
    batch.step = Step(step);
    batch.producer = "p0";
    batch.samples_digest = run.samples_digest;
    batch.plan_digest = run.plan_digest;
    batch.global_valid_labels = run.global_valid_labels;
    batch.micro_batches = std::move(run.micro_batches);
    batch.events = std::move(run.events);
    batch.buffers = {run.bytes};
    return batch;
  }
  void deliver(std::initializer_list<std::uint64_t> steps) {
    for (const std::uint64_t step : steps) judge_.delivered(batch(step));
  }

  const BatchSources sources_ = sample_sources();
  HandmadeStream stream_;
  ConsumerJudge judge_{stream_.history(), sources_, stream_.violations()};
};

TEST_F(ConsumerJudgeTest, EveryStepInOrderToTheEnd) {
  deliver({0, 1, 2, 3});
  judge_.at_end();
  judge_.check_whole(Step(4));
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(judge_.tally().tokens, 36U);
  std::uint64_t hash = 0;
  for (const std::uint64_t step : {0U, 1U, 2U, 3U})
    hash = client::next_samples_hash(hash, batch(step).samples_digest);
  const client::DeliveredStep last{Step(3), batch(3).samples_digest};
  judge_.state_told({.stream = {}, .next_step = Step(4), .samples_hash = hash, .last = last});
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(ConsumerJudgeTest, SkipsOfTheHeadItOpenedWith) {
  open(6, 0);
  deliver({0, 2});
  EXPECT_EQ(judge_.due(), Step(4));
  judge_.at_end();
  judge_.check_whole(Step(4));
  EXPECT_TRUE(stream_.is_right());
  open(5, 5);
  deliver({0, 2, 3});
  judge_.at_end();
  judge_.check_whole(Step(4));
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(judge_.tally().passed_over, std::vector{Step(1)});
}

TEST_F(ConsumerJudgeTest, StepsLaidOutAnew) {
  open(4, 0, 3);
  for (const std::uint64_t step : {0U, 1U, 2U, 3U}) judge_.delivered(batch(step, 3));
  judge_.check_whole(Step(4));
  EXPECT_TRUE(stream_.is_right());
  EXPECT_EQ(judge_.tally().tokens, 24U);
}

TEST_F(ConsumerJudgeTest, ItGoesOnWhereItIsSent) {
  deliver({0, 1});
  const Tally saved = judge_.tally();
  deliver({2});
  judge_.sought(saved);
  deliver({2, 3});
  judge_.check_whole(Step(4));
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(ConsumerJudgeTest, I7NoStepComesTwice) {
  deliver({0, 0});
  EXPECT_TRUE(stream_.breaks_only("I7", "was given step 0, but 1 is due"));
}

TEST_F(ConsumerJudgeTest, I15NoStepIsPassedOverSilently) {
  deliver({0, 2});
  EXPECT_TRUE(stream_.breaks_only("I15", "was given step 2, but 1 is due by the SKIPs of slot 4"));
}

TEST_F(ConsumerJudgeTest, I15AStepThatIsSkippedIsNotGiven) {
  open(5);
  deliver({0, 1});
  EXPECT_TRUE(stream_.breaks_only("I15", "was given step 1, but 2 is due by the SKIPs of slot 5"));
}

TEST_F(ConsumerJudgeTest, I15ItOpensWithACommittedHeadThatIsNewEnough) {
  open(4, 5);
  EXPECT_TRUE(stream_.breaks_only("I15", "opened with slot 4 of 7, though asked for slot 5"));
  stream_.violations() = {};
  open(8);
  EXPECT_TRUE(stream_.breaks_only("I15", "opened with slot 8"));
}

TEST_F(ConsumerJudgeTest, I15ItOpensWithTheVeryHeadUnlessThatIsGone) {
  open(6, 5);
  EXPECT_TRUE(stream_.breaks_only("I15", "opened with slot 6 of 7, though asked for slot 5, or"));
  stream_.violations() = {};
  stream_.put_floor(5);
  Tally at_end;
  at_end.next = Step(4);
  judge_.opened({.rank = HdpRank(1), .ranks = 0, .min_slot = Slot(5), .opened_with = Slot(6)},
                at_end);
  EXPECT_TRUE(stream_.is_right());
}

TEST_F(ConsumerJudgeTest, I15ALaterHeadDoesOnlyIfItSkipsNothingThatIsLeft) {
  stream_.put_floor(5);
  open(6, 5);
  EXPECT_TRUE(stream_.breaks_only("I15", "opened with slot 6, which skips steps from here on"));
  stream_.violations() = {};
  open(6);
  EXPECT_TRUE(stream_.is_right()) << "it asked for no slot";
}

TEST_F(ConsumerJudgeTest, I15AHeadIsSaidToBeGoneOnlyBelowTheFloor) {
  const auto refuse = [&](std::uint64_t min_slot) {
    judge_.refused({.rank = HdpRank(1), .ranks = 0, .min_slot = Slot(min_slot), .opened_with = {}});
  };
  stream_.put_floor(5);
  refuse(5);
  EXPECT_TRUE(stream_.is_right());
  refuse(6);
  EXPECT_TRUE(stream_.breaks_only("I15", "told that the head of slot 6 is gone, but the floor is"));
  stream_.violations() = {};
  refuse(0);
  EXPECT_TRUE(stream_.breaks_only("I15", "told that the head of slot 0 is gone"));
}

TEST_F(ConsumerJudgeTest, I13NoStepIsGivenThatNobodyCommitted) {
  deliver({0, 1, 2, 3});
  StepBatch next = batch(4);
  judge_.delivered(next);
  EXPECT_TRUE(stream_.breaks_only("I13", "was given step 4, which nobody committed"));
}

TEST_F(ConsumerJudgeTest, I13TheContentIsThatOfItsStepAndRank) {
  const std::pair<std::function<StepBatch()>, const char*> wrong[] = {
      {[&] { return of_object(1, 0); }, "the content is not what p0 made of batch 0"},
      {[&] { return batch(0, 3); }, "the content is not what p0 made of batch 0"},
      {[&] {
         StepBatch spoilt = batch(0);
         spoilt.micro_batches.pop_back();
         return spoilt;
       },
       "the content is not"},
      {[&] {
         StepBatch spoilt = batch(0);
         ++spoilt.samples_digest;
         return spoilt;
       },
       "the digest of the samples is not"},
      {[&] {
         StepBatch spoilt = batch(0);
         ++spoilt.plan_digest;
         return spoilt;
       },
       "the digest of the plan is not"},
      {[&] {
         StepBatch spoilt = batch(0);
         ++spoilt.global_valid_labels;
         return spoilt;
       },
       "the count of labels is not"},
      {[&] {
         StepBatch spoilt = batch(0);
         spoilt.producer = "p1";
         return spoilt;
       },
       "the producer is not"}};
  for (const auto& [make, reason] : wrong) {
    stream_.violations() = {};
    open(4);
    judge_.delivered(make());
    EXPECT_TRUE(stream_.breaks_only("I13", reason));
  }
}

TEST_F(ConsumerJudgeTest, I15TheEndIsWhereTheStreamHasEnded) {
  deliver({0, 1, 2});
  judge_.at_end();
  EXPECT_TRUE(
      stream_.breaks_only("I15", "told that the stream ends before step 3, where it never"));
}

TEST_F(ConsumerJudgeTest, I15AnEndBeforeTheHeadThatWasAskedForIsOver) {
  Head reopened = stream_.edit();
  reopened.ended = false;
  stream_.commit(reopened);
  deliver({0, 1, 2, 3});
  judge_.at_end();
  EXPECT_TRUE(stream_.is_right()) << "it has ended once";
  open(8, 8);
  deliver({0, 2});
  judge_.at_end();
  EXPECT_TRUE(
      stream_.breaks_only("I15", "told that the stream ends before step 4, where it never"));
}

TEST_F(ConsumerJudgeTest, I7ItsStateIsWhatItWasGiven) {
  deliver({0});
  const client::ConsumerState right{.stream = {},
                                    .next_step = Step(1),
                                    .samples_hash = judge_.tally().samples_hash,
                                    .last = judge_.tally().last};
  judge_.state_told(right);
  EXPECT_TRUE(stream_.is_right());
  const auto expect_wrong = [&](const client::ConsumerState& told, const char* reason) {
    judge_.state_told(told);
    EXPECT_TRUE(stream_.breaks_only("I7", reason));
    stream_.violations() = {};
  };
  client::ConsumerState state = right;
  state.next_step = Step(2);
  expect_wrong(state, "its state is step 2");
  state = right;
  state.samples_hash = 3;
  expect_wrong(state, "with hash 0000000000000003");
  state = right;
  state.last.reset();
  expect_wrong(state, "its state has seen no step last; it was given step 0 with digest");
  state.last = {Step(0), 5};
  expect_wrong(state, "seen step 0 with digest 0000000000000005 last; it was given step 0");
}

TEST_F(ConsumerJudgeTest, I7TheWholeTrainingIsTheWholeStream) {
  deliver({0, 1, 2});
  judge_.check_whole(Step(4));
  EXPECT_TRUE(stream_.breaks_only("I7", "its training ends before step 3 of 4"));
  stream_.violations() = {};
  Tally other = judge_.tally();
  ++other.tokens;
  judge_.sought(other);
  deliver({3});
  judge_.check_whole(Step(4));
  EXPECT_TRUE(
      stream_.breaks_only("I7", "its training took 37 tokens; its part of the stream has 36"));
}

}  // namespace
}  // namespace batchloom::simulator
