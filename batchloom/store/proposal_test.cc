// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/proposal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

/// A head of slot 5 with one session, `p` of term 3, whose next batch is 2.
Head head_of_p() {
  Head head;
  head.slot = Slot(5);
  head.next_step = Step(10);
  head.first_step = Step(10);
  head.producers = {{.producer = "p",
                     .term = Term(3),
                     .next_seq = Seq(2),
                     .last_slot = Slot(4),
                     .finished = false,
                     .state = {}}};
  return head;
}

const Session kSession{.producer = "p", .term = Term(3)};

std::vector<PendingBatch> batches_from(Seq first, std::size_t count, std::uint32_t steps = 1) {
  std::vector<PendingBatch> batches;
  for (std::size_t i = 0; i < count; ++i) {
    batches.push_back({.seq = first + i,
                       .nonce = Nonce(100 + i),
                       .size_bytes = 1000 + i,
                       .steps = steps,
                       .ranks = 2,
                       .run_table = {},
                       .state_after = {}});
  }
  return batches;
}

std::function<Nonce()> counting_nonces() {
  return [next = std::uint64_t{0}]() mutable { return Nonce(++next); };
}

Proposal propose(const Head& head, std::span<const PendingBatch> batches,
                 const Limits& limits = {}) {
  return append_batches(head, kSession, batches, test_uuid(1), limits, counting_nonces());
}

std::size_t pending(const Head& head, Seq first, std::size_t count,
                    const Safeguards& safeguards = {}) {
  return still_pending(head, kSession, batches_from(first, count), safeguards).value().size();
}

TEST(StillPending, DropsWhatTheHeadCovers) {
  const Head head = head_of_p();
  EXPECT_EQ(pending(head, Seq(2), 3), 3u);
  EXPECT_EQ(pending(head, Seq(1), 3), 2u);
  EXPECT_EQ(pending(head, Seq(0), 3), 1u);
  EXPECT_EQ(pending(head, Seq(0), 2), 0u);
  EXPECT_EQ(pending(head, Seq(0), 1), 0u);
  EXPECT_EQ(pending(head, Seq(2), 0), 0u);
}

TEST(StillPending, DropsFromTheFront) {
  const auto batches = batches_from(Seq(1), 3);
  const auto rest = still_pending(head_of_p(), kSession, batches, {}).value();
  EXPECT_EQ(rest.data(), batches.data() + 1);
}

TEST(StillPending, WithoutTheDropRuleAllComeAgain) {
  std::size_t asked = 0;
  const Safeguards broken{.broken = Safeguard::kDropRule, .on_use = [&](Safeguard) { ++asked; }};
  EXPECT_EQ(pending(head_of_p(), Seq(1), 3, broken), 3u);
  EXPECT_EQ(asked, 1u);
  EXPECT_EQ(pending(head_of_p(), Seq(2), 3, broken), 3u);
  EXPECT_EQ(asked, 1u) << "nothing to decide where nothing is covered";
}

TEST(StillPending, AGapIsInvalid) {
  const auto result = still_pending(head_of_p(), kSession, batches_from(Seq(3), 1), {});
  EXPECT_TRUE(result.is(ErrorKind::kInvalid));
  EXPECT_EQ(result.status().message(), "producer p: batch 3 is offered, but 2 is next");
}

TEST(StillPending, NumbersThatAreNotDenseAreInvalid) {
  for (const auto& [first, second] : {std::pair{2, 4}, {2, 2}, {2, 1}, {0, 2}}) {
    auto batches = batches_from(Seq(static_cast<std::uint64_t>(first)), 2);
    batches[1].seq = Seq(static_cast<std::uint64_t>(second));
    EXPECT_TRUE(still_pending(head_of_p(), kSession, batches, {}).is(ErrorKind::kInvalid));
  }
}

TEST(StillPending, AnotherTermFences) {
  Head head = head_of_p();
  head.producers[0].term = Term(5);
  const auto batches = batches_from(Seq(2), 1);
  const auto result = still_pending(head, kSession, batches, {});
  EXPECT_TRUE(result.is(ErrorKind::kFenced));
  EXPECT_NE(result.status().message().find("term 3 was replaced by term 5"), std::string::npos);
  EXPECT_TRUE(still_pending(head, kSession, {}, {}).is(ErrorKind::kFenced))
      << "whatever is offered";
  EXPECT_TRUE(still_pending(head, kSession, batches_from(Seq(9), 1), {}).is(ErrorKind::kFenced));
  const Safeguards broken{.broken = Safeguard::kTermCheck, .on_use = {}};
  EXPECT_EQ(still_pending(head, kSession, batches, broken)->size(), 1u);
}

TEST(StillPending, AnEndedStreamTakesNothingNew) {
  Head head = head_of_p();
  head.ended = true;
  EXPECT_EQ(pending(head, Seq(0), 2), 0u) << "covered";
  EXPECT_EQ(pending(head, Seq(2), 0), 0u);
  const auto refused = still_pending(head, kSession, batches_from(Seq(1), 2), {});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_EQ(refused.status().message(),
            "producer p, batch 2: the stream ended before step 10; reopen it to append more");
}

TEST(StillPending, PlansAreForTheTopologyThatHolds) {
  Head head = head_of_p();
  head.topologies = {{Step(3), 3, "dp=3"}, {Step(10), 2, "cp=2"}};
  EXPECT_EQ(pending(head, Seq(2), 3), 3u);
  head.topologies.pop_back();
  EXPECT_EQ(pending(head, Seq(0), 2), 0u) << "covered";
  const auto refused = still_pending(head, kSession, batches_from(Seq(1), 2), {});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_EQ(
      refused.status().message(),
      "producer p, batch 2: planned for 2 HDP ranks, but the topology from step 3 on, 'dp=3', "
      "has 3; plan it anew, or set its topology");
  auto batches = batches_from(Seq(2), 3);
  batches[0].ranks = batches[1].ranks = 3;
  EXPECT_TRUE(still_pending(head, kSession, batches, {}).is(ErrorKind::kInvalid)) << "each one's";
  batches[2].ranks = 3;
  EXPECT_EQ(still_pending(head, kSession, batches, {})->size(), 3u);
}

TEST(StillPending, ARowThatWasDroppedFences) {
  Head head = head_of_p();
  head.producers.clear();
  EXPECT_TRUE(still_pending(head, kSession, {}, {}).is(ErrorKind::kFenced));
}

TEST(AppendBatches, ContinuesStepsAndSequenceNumbers) {
  const Proposal proposal = propose(head_of_p(), batches_from(Seq(2), 3, 4));
  EXPECT_EQ(proposal.batches, 3u);
  EXPECT_TRUE(proposal.segments.empty());
  const Head& next = proposal.head;
  EXPECT_EQ(next.slot, Slot(6));
  EXPECT_EQ(next.next_step, Step(22));
  ASSERT_EQ(next.tail.size(), 3u);
  EXPECT_EQ(next.tail[1], (Entry{.first_step = Step(14),
                                 .steps = 4,
                                 .producer = "p",
                                 .term = Term(3),
                                 .seq = Seq(3),
                                 .nonce = Nonce(101),
                                 .size_bytes = 1001,
                                 .ranks = 2,
                                 .run_table = {}}));
  EXPECT_EQ(next.producers[0].next_seq, Seq(5));
  EXPECT_EQ(next.producers[0].last_slot, Slot(6));
}

TEST(AppendBatches, ChangesNothingElse) {
  Head head = head_of_p();
  head.first_step = Step(3);
  head.segments = {{{Slot(4), 0, Nonce(9), Step(3), 100, 7}}};
  head.producers.push_back(head.producers[0]);
  head.producers[1].producer = "q";
  Head expected = propose(head, batches_from(Seq(2), 1)).head;
  expected.slot = head.slot;
  expected.next_step = head.next_step;
  expected.tail.clear();
  expected.producers[0] = head.producers[0];
  EXPECT_EQ(expected, head);
}

TEST(AppendBatches, TakesWhatFitsAndSealsOnlyAFullTail) {
  const Limits limits{.tail_entries = 3};
  const Proposal first = propose(head_of_p(), batches_from(Seq(2), 5), limits);
  EXPECT_EQ(first.batches, 3u);
  EXPECT_TRUE(first.segments.empty());
  const Proposal second = propose(first.head, batches_from(Seq(5), 2), limits);
  EXPECT_EQ(second.batches, 2u);
  EXPECT_EQ(second.segments.size(), 1u);
  EXPECT_EQ(second.head.tail.size(), 2u);
  const Proposal third = propose(second.head, batches_from(Seq(7), 4), limits);
  EXPECT_EQ(third.batches, 1u) << "first the tail is filled";
  EXPECT_TRUE(third.segments.empty());
}

TEST(AppendBatches, BytesBindToo) {
  const Entry entry = propose(head_of_p(), batches_from(Seq(2), 1)).head.tail[0];
  const Limits limits{.tail_bytes = 2 * encoded_bound(entry)};
  EXPECT_EQ(propose(head_of_p(), batches_from(Seq(2), 5), limits).batches, 2u);
}

TEST(AppendBatches, AStateThatWentUnderADropIsNotLowered) {
  Head head = head_of_p();
  head.producers[0].next_seq = Seq(9);
  EXPECT_EQ(propose(head, batches_from(Seq(2), 1)).head.producers[0].next_seq, Seq(9));
}

TEST(StateFitsInline, UpToTheLimitOfOneAndOfAll) {
  const Limits limits{.inline_state_bytes = 20, .inline_state_max_bytes = 8};
  Head head = head_of_p();
  EXPECT_TRUE(state_fits_inline(head, "p", 8, limits));
  EXPECT_FALSE(state_fits_inline(head, "p", 9, limits));
  for (const char* name : {"q", "r"}) {
    head.producers.push_back(head.producers[0]);
    head.producers.back().producer = name;
    head.producers.back().state.inline_bytes = Bytes(8);
  }
  EXPECT_TRUE(state_fits_inline(head, "p", 4, limits));
  EXPECT_FALSE(state_fits_inline(head, "p", 5, limits));
  EXPECT_TRUE(state_fits_inline(head, "q", 8, limits)) << "its old state makes room";
}

TEST(FenceProducer, InsertsInOrderWithTheNewSlotAsTerm) {
  Head head = head_of_p();
  for (const std::string name : {"z", "a", "pp"}) {
    head = fence_producer(head, name, {}).value();
    EXPECT_EQ(head.find_producer(name)->term, Term(head.slot.value));
    EXPECT_EQ(head.find_producer(name)->next_seq, Seq(0));
  }
  EXPECT_EQ(head.slot, Slot(8));
  std::vector<std::string> names;
  for (const ProducerRow& row : head.producers) names.push_back(row.producer);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "p", "pp", "z"}));
}

TEST(FenceProducer, KeepsNumbersAndState) {
  Head head = head_of_p();
  head.producers[0].state.inline_bytes = to_bytes("cursor");
  head.producers[0].finished = true;
  const Head next = fence_producer(head, "p", {}).value();
  ProducerRow expected = head.producers[0];
  expected.term = Term(6);
  expected.last_slot = Slot(6);
  expected.finished = false;
  EXPECT_EQ(next.producers, std::vector{expected});
  EXPECT_EQ(next.next_step, head.next_step);
}

TEST(FenceProducer, OldestFinishedRowsMakeRoom) {
  const Limits limits{.producer_bytes = 3 * encoded_bound(head_of_p().producers[0])};
  Head head = head_of_p();
  head = fence_producer(head, "q", limits).value();
  head = fence_producer(head, "r", limits).value();
  EXPECT_TRUE(fence_producer(head, "s", limits).is(ErrorKind::kExhausted));
  EXPECT_TRUE(fence_producer(head, "r", limits).is_ok()) << "its row is there";
  head = finish_producer(head, {"r", Term(7)});
  head = finish_producer(head, {"p", Term(3)});
  EXPECT_NE(fence_producer(head, "r", limits).value().find_producer("p"), nullptr);
  head = fence_producer(head, "s", limits).value();
  EXPECT_EQ(head.find_producer("r"), nullptr) << "finished before p";
  EXPECT_NE(head.find_producer("p"), nullptr);
  head = fence_producer(head, "t", limits).value();
  EXPECT_EQ(head.find_producer("p"), nullptr);
  const auto refused = fence_producer(head, "u", limits);
  EXPECT_TRUE(refused.is(ErrorKind::kExhausted));
  EXPECT_NE(refused.status().message().find("3 rows"), std::string::npos)
      << refused.status().to_string();
}

TEST(FinishProducer, MarksTheRowOnly) {
  const Head next = finish_producer(head_of_p(), kSession);
  EXPECT_EQ(next.slot, Slot(6));
  EXPECT_TRUE(next.producers[0].finished);
  EXPECT_EQ(next.producers[0].last_slot, Slot(6));
  EXPECT_EQ(next.producers[0].term, Term(3));
  EXPECT_EQ(next.producers[0].next_seq, Seq(2));
}

}  // namespace
}  // namespace batchloom::store
