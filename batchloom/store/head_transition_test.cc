// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head_transition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace batchloom::store {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

ProducerRow row_of(std::string producer, Term term, Seq next_seq, Slot last_slot) {
  ProducerRow row;
  row.producer = std::move(producer);
  row.term = term;
  row.next_seq = next_seq;
  row.last_slot = last_slot;
  return row;
}

Entry entry_of(Step first_step, std::uint32_t steps, Seq seq) {
  Entry entry;
  entry.first_step = first_step;
  entry.steps = steps;
  entry.producer = "a";
  entry.term = Term(5);
  entry.seq = seq;
  return entry;
}

// Slot 9: producer "a" of term 5 with 4 batches; "done" has finished, "idle" has not.
Head before() {
  Head head;
  head.slot = Slot(9);
  head.writer = {.producer = "a", .term = Term(5)};
  head.first_step = Step(2);
  head.next_step = Step(4);
  head.producers = {row_of("a", Term(5), Seq(4), Slot(9)), row_of("done", Term(2), Seq(0), Slot(3)),
                    row_of("idle", Term(4), Seq(0), Slot(4))};
  head.producers[1].finished = true;
  head.tail = {entry_of(Step(2), 2, Seq(3))};
  return head;
}

Head next_slot(const std::string& writer, Term term) {
  Head head = before();
  head.slot = Slot(10);
  head.writer = {.producer = writer, .term = term};
  head.find_producer(writer)->last_slot = Slot(10);
  return head;
}

// Two batches of "a" in steps 4 to 6.
Head commit() {
  Head head = next_slot("a", Term(5));
  head.producers[0].next_seq = Seq(6);
  head.producers[0].state.inline_bytes = to_bytes("state");
  head.tail.push_back(entry_of(Step(4), 2, Seq(4)));
  head.tail.push_back(entry_of(Step(6), 1, Seq(5)));
  head.next_step = Step(7);
  return head;
}

Head fence() {
  Head head = next_slot("a", Term(10));
  head.producers[0].term = Term(10);
  return head;
}

Head finish() {
  Head head = next_slot("a", Term(5));
  head.producers[0].finished = true;
  return head;
}

TEST(HeadTransition, AcceptsWhatTheProtocolDoes) {
  EXPECT_THAT(transition_problems(before(), commit()), IsEmpty());
  EXPECT_THAT(transition_problems(before(), fence()), IsEmpty());
  EXPECT_THAT(transition_problems(before(), finish()), IsEmpty());
}

TEST(HeadTransition, AcceptsASealedTail) {
  Head after = commit();
  after.tail.erase(after.tail.begin());
  SegmentRef sealed;
  sealed.slot = Slot(10);
  sealed.first_step = Step(2);
  after.segments = {{sealed}};
  EXPECT_THAT(transition_problems(before(), after), IsEmpty());
}

TEST(HeadTransition, AcceptsAFenceThatMakesRoom) {
  Head after = fence();
  std::erase_if(after.producers, [](const ProducerRow& row) { return row.finished; });
  EXPECT_THAT(transition_problems(before(), after), IsEmpty());
}

TEST(HeadTransition, AcceptsTheFenceOfANewOrAFinishedProducer) {
  Head with_new = before();
  with_new.slot = Slot(10);
  with_new.writer = {.producer = "new", .term = Term(10)};
  with_new.producers.push_back(row_of("new", Term(10), Seq(0), Slot(10)));
  EXPECT_THAT(transition_problems(before(), with_new), IsEmpty());
  Head again = next_slot("done", Term(10));
  again.find_producer("done")->term = Term(10);
  again.find_producer("done")->finished = false;
  EXPECT_THAT(transition_problems(before(), again), IsEmpty());
}

/// A step that breaks one rule, and what is said about it.
struct BadStep {
  const char* name;
  Head (*good)();
  std::function<void(Head&)> breaks;
  const char* reason;
};

class HeadTransitionRefuses : public testing::TestWithParam<BadStep> {};

TEST_P(HeadTransitionRefuses, AndSaysWhy) {
  Head after = GetParam().good();
  GetParam().breaks(after);
  EXPECT_THAT(transition_problems(before(), after), Contains(HasSubstr(GetParam().reason)));
}

const BadStep kBadSteps[] = {
    {"FirstStepFalls", commit, [](Head& h) { h.first_step = Step(1); },
     "first step moves from 2 to 1, although a wrote this slot"},
    {"CommitTrims", commit, [](Head& h) { h.first_step = Step(3); },
     "first step moves from 2 to 3"},
    {"CommitAnnounces", commit, [](Head& h) { h.trim_intent = TrimIntent{Step(3), Slot(10)}; },
     "the trim intent has changed, although a wrote this slot"},
    {"CommitEnds", commit, [](Head& h) { h.ended = true; }, "the end has changed"},
    {"FinishSetsATopology", finish, [](Head& h) { h.topologies = {{Step(4), 1, "dp=1"}}; },
     "the topologies have changed"},
    {"FinishSetsAMembership", finish,
     [](Head& h) { h.memberships.emplace_back().from_step = Step(4); },
     "the memberships have changed"},
    {"FenceSkips", fence, [](Head& h) { h.skipped = {Step(2)}; }, "what is skipped has changed"},
    {"NextStepFalls", fence, [](Head& h) { h.next_step = Step(3); }, "next step falls from 4 to 3"},
    {"NoWriter", fence, [](Head& h) { h.writer = {}; }, "no producer wrote it, and it is neither"},
    {"WriterRowGone", fence, [](Head& h) { h.producers.erase(h.producers.begin()); },
     "writer 'a' has no row"},
    {"LiveRowGone", fence, [](Head& h) { h.producers.pop_back(); }, "it has not finished"},
    {"RowGoneWithoutFence", commit, [](Head& h) { h.producers.erase(h.producers.begin() + 1); },
     "the row of done is gone, although only a fence drops rows"},
    {"OtherRowChanged", commit, [](Head& h) { ++h.find_producer("idle")->next_seq; },
     "the row of idle has changed, although a wrote"},
    {"OtherRowNew", commit,
     [](Head& h) { h.producers.push_back(row_of("new", Term(10), Seq(0), Slot(10))); },
     "the row of new is new"},
    {"LastSlotStays", commit, [](Head& h) { h.producers[0].last_slot = Slot(9); },
     "names slot 9 as its last"},
    {"RowOfAnotherTerm", commit, [](Head& h) { h.producers[0].term = Term(6); },
     "a wrote it in term 5, but its row has term 6"},
    {"FencedWriter", commit, [](Head& h) { h.writer.term = h.producers[0].term = Term(4); },
     "a wrote it in term 4, but had been fenced in term 5"},
    {"WriterWithoutFence", commit,
     [](Head& h) {
       h.writer = {.producer = "x", .term = Term(5)};
       h.producers.push_back(row_of("x", Term(5), Seq(0), Slot(10)));
     },
     "x wrote it in term 5, but had no row"},
    {"FenceMovesOn", fence, [](Head& h) { ++h.producers[0].next_seq; }, "more of its row"},
    {"FenceChangesState", fence, [](Head& h) { h.producers[0].state.inline_bytes = to_bytes("x"); },
     "more of its row"},
    {"FenceCommits", fence, [](Head& h) { h.next_step = Step(5); }, "moves next step from 4 to 5"},
    {"EntryOfAnother", commit, [](Head& h) { h.tail[2].producer = "idle"; },
     "step 6 was added as idle's of term 5, although a of term 5 wrote it"},
    {"EntryOfAnotherTerm", commit, [](Head& h) { h.tail[1].term = Term(4); },
     "step 4 was added as a's of term 4"},
    {"EntryRepeated", commit, [](Head& h) { h.tail[1].seq = Seq(3); },
     "step 4 was added as a's batch 3, although 4 was next"},
    {"StepsWithoutEntries", commit, [](Head& h) { h.next_step = Step(8); },
     "but entries were added up to 7"},
    {"EntryAcross", commit,
     [](Head& h) {
       h.tail.erase(h.tail.begin());
       h.tail[0].first_step = Step(3);
     },
     "next step moves from 4 to 7, but entries were added up to 4"},
    {"SeqWithoutEntries", commit, [](Head& h) { h.producers[0].next_seq = Seq(7); },
     "a's next batch is 7, but entries were added up to 6"},
    {"EntryOfAFinishedProducer", commit, [](Head& h) { h.producers[0].finished = true; },
     "a adds entries, although it has finished"},
    {"FinishChangesState", finish,
     [](Head& h) { h.producers[0].state.inline_bytes = to_bytes("x"); },
     "a adds nothing, but its state has changed"},
    {"FenceChangesTail", fence, [](Head& h) { h.tail[0].nonce = Nonce(7); },
     "the tail is not what slot 9 left"},
    {"FinishLosesTail", finish, [](Head& h) { h.tail.clear(); },
     "the tail is not what slot 9 left"},
    {"CommitChangesOldTail", commit, [](Head& h) { ++h.tail[0].size_bytes; },
     "the tail is not what slot 9 left"},
    {"CommitLosesOldTail", commit, [](Head& h) { h.tail.erase(h.tail.begin()); },
     "the tail is gone, but no segment of this slot begins at step 2"},
    {"FenceChangesSegments", fence, [](Head& h) { h.segments = {{SegmentRef()}}; },
     "the segments are not those of slot 9, although nothing was sealed"},
    {"FinishChangesSegments", finish, [](Head& h) { h.segments = {{SegmentRef()}}; },
     "the segments are not those of slot 9, although nothing was sealed"},
    {"CommitChangesSegments", commit, [](Head& h) { h.segments = {{SegmentRef()}}; },
     "the segments are not those of slot 9, although nothing was sealed"},
    {"NothingDone", finish, [](Head& h) { h.producers[0].finished = false; },
     "neither fenced, committed nor finished"},
};

INSTANTIATE_TEST_SUITE_P(BadSteps, HeadTransitionRefuses, testing::ValuesIn(kBadSteps),
                         [](const auto& step) { return std::string(step.param.name); });

TEST(HeadTransition, RefusesWhatTheStreamDoesNotTake) {
  const auto with = [](Head head, bool ended, std::uint32_t ranks) {
    head.ended = ended;
    head.topologies = {{Step(0), 1, "dp=1"}, {Step(4), ranks, "dp=3"}};
    return head;
  };
  EXPECT_THAT(transition_problems(with(before(), true, 0), with(commit(), true, 0)),
              testing::ElementsAre("step 4 was added, although the stream had ended"));
  EXPECT_THAT(transition_problems(with(before(), false, 3), with(commit(), false, 3)),
              testing::ElementsAre(
                  "step 4 was added for 0 ranks, although 'dp=3' of 3 holds from step 4 on",
                  "step 6 was added for 0 ranks, although 'dp=3' of 3 holds from step 4 on"));
  EXPECT_THAT(transition_problems(with(before(), true, 3), with(fence(), true, 3)), IsEmpty());
  EXPECT_THAT(transition_problems(with(before(), true, 3), with(finish(), true, 3)), IsEmpty());
}

TEST(HeadTransition, RefusesToUnfinishWithoutAFence) {
  Head finished = before();
  finished.producers[0].finished = true;
  EXPECT_THAT(transition_problems(finished, commit()), Contains(HasSubstr("a had finished")));
}

}  // namespace
}  // namespace batchloom::store
