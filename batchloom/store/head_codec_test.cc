// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <limits>
#include <ostream>

#include "batchloom/store/codec.h"
#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

Result<StoredHead> recode(const Head& head) {
  return decode_head(kTestUuid, head.slot, encode_head(kTestUuid, head).bytes);
}

TEST(HeadCodec, ReadsASmallHeadBack) {
  const auto stored = recode(small_head());
  ASSERT_TRUE(stored.is_ok()) << stored.status().to_string();
  EXPECT_EQ(stored->head, small_head());
  EXPECT_EQ(stored->crc, encode_head(kTestUuid, small_head()).crc);
}

TEST(HeadCodec, ReadsGenesisBack) {
  Head genesis;
  genesis.slot = Slot(1);
  const auto stored = recode(genesis);
  ASSERT_TRUE(stored.is_ok()) << stored.status().to_string();
  EXPECT_EQ(stored->head, genesis);
}

TEST(HeadCodec, IgnoresHowTheObjectIsAligned) {
  const Bytes object = encode_head(kTestUuid, small_head()).bytes;
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Bytes shifted(shift);
    shifted.insert(shifted.end(), object.begin(), object.end());
    const auto stored = decode_head(kTestUuid, Slot(9), ByteSpan(shifted).subspan(shift));
    ASSERT_TRUE(stored.is_ok()) << shift << ": " << stored.status().to_string();
    EXPECT_EQ(stored->head, small_head());
  }
}

TEST(HeadCodec, RefusesAHeadOfAnotherSlot) {
  const Bytes object = encode_head(kTestUuid, small_head()).bytes;
  const Status status = decode_head(kTestUuid, Slot(8), object).status();
  EXPECT_TRUE(status.is(ErrorKind::kCorruption));
  EXPECT_NE(status.message().find("m/00000000000000000008: at byte "), std::string::npos);
  EXPECT_NE(status.message().find("slot 9, expected 8"), std::string::npos) << status.message();
}

/// A head that breaks one rule, and what the complaint about it says.
struct BrokenHead {
  const char* name;
  std::function<void(Head&)> breaks;
  const char* reason;

  friend void PrintTo(const BrokenHead& broken, std::ostream* out) { *out << broken.name; }
};

class HeadCodecRules : public testing::TestWithParam<BrokenHead> {};

TEST_P(HeadCodecRules, AreChecked) {
  Head head = small_head();
  GetParam().breaks(head);
  const Status status = recode(head).status();
  EXPECT_TRUE(status.is(ErrorKind::kCorruption)) << status.to_string();
  EXPECT_EQ(status.message().find("m/"), 0U) << status.message();
  EXPECT_NE(status.message().find(": at byte "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(GetParam().reason), std::string::npos) << status.message();
}

const BrokenHead kBrokenHeads[] = {
    {"SlotZero", [](Head& h) { h.slot = Slot(0); }, "slots count from 1"},
    {"GenesisWithPrevious",
     [](Head& h) {
       h = Head();
       h.slot = Slot(1);
       h.previous_crc = 1;
     },
     "genesis follows another head"},
    {"FirstAboveNext", [](Head& h) { h.first_step = Step(17); },
     "first step 17 is above next step 16"},
    {"WriterName", [](Head& h) { h.writer.producer = "Beta"; }, "writer of 4 bytes"},
    {"WriterWithoutTerm", [](Head& h) { h.writer.term = Term(0); }, "with term 0"},
    {"WriterFromTheFuture", [](Head& h) { h.writer.term = Term(10); }, "with term 10 in slot 9"},
    {"NobodyWithTerm", [](Head& h) { h.writer.producer.clear(); }, "writer of 0 bytes with term 4"},
    {"RowName", [](Head& h) { h.producers[0].producer = "a/b"; }, "not a producer's name"},
    {"RowOrder", [](Head& h) { std::swap(h.producers[0], h.producers[1]); },
     "row of alpha stands after that of beta"},
    {"RowTwice", [](Head& h) { h.producers[1].producer = "alpha"; },
     "row of alpha stands after that of alpha"},
    {"RowTermZero", [](Head& h) { h.producers[0].term = Term(0); }, "alpha has term 0"},
    {"RowTermAboveLastSlot", [](Head& h) { h.producers[0].last_slot = Slot(2); },
     "term 3 and last slot 2"},
    {"RowLastSlotAboveSlot", [](Head& h) { h.producers[0].last_slot = Slot(10); },
     "last slot 10 in slot 9"},
    {"StateTwice", [](Head& h) { h.producers[1].state.inline_bytes = Bytes(1); },
     "beta has a state inline and by reference"},
    {"StateTermZero", [](Head& h) { h.producers[1].state.ref->term = Term(0); },
     "beta of term 4 has a state of term 0"},
    {"StateTermAboveRow", [](Head& h) { h.producers[1].state.ref->term = Term(5); },
     "beta of term 4 has a state of term 5"},
    {"TooManyLevels", [](Head& h) { h.segments.resize(kMaxLevels + 1); }, "has 17 levels"},
    {"SegmentSlotZero", [](Head& h) { h.segments[0][0].slot = Slot(0); }, "segment of slot 0"},
    {"SegmentSlotAbove", [](Head& h) { h.segments[1][0].slot = Slot(10); },
     "segment of slot 10 in slot 9"},
    {"SegmentOrder", [](Head& h) { std::swap(h.segments[0][0], h.segments[0][1]); },
     "segment from step 6 stands after one from step 8"},
    {"SegmentTwice", [](Head& h) { h.segments[0][1] = h.segments[0][0]; },
     "segment from step 6 stands after one from step 6"},
    {"LevelOrder", [](Head& h) { std::swap(h.segments[0], h.segments[1]); },
     "last segment of level 1 begins at step 8, rows newer than it at 2"},
    {"SegmentInTail", [](Head& h) { h.segments[0][1].first_step = Step(10); },
     "last segment of level 0 begins at step 10, rows newer than it at 10"},
    {"SegmentAboveNext",
     [](Head& h) {
       h.tail.clear();
       h.next_step = Step(8);
     },
     "last segment of level 0 begins at step 8, rows newer than it at 8"},
    {"EntryName", [](Head& h) { h.tail[0].producer = std::string(64, 'a'); },
     "not a producer's name"},
    {"EntryWithoutSteps", [](Head& h) { h.tail[0].steps = 0; }, "entry without steps"},
    {"EntryTermZero", [](Head& h) { h.tail[0].term = Term(0); }, "entry of term 0 in slot 9"},
    {"EntryTermAbove", [](Head& h) { h.tail[1].term = Term(10); }, "entry of term 10 in slot 9"},
    {"EntryGap", [](Head& h) { h.tail[1].first_step = Step(13); },
     "entry begins at step 13, the one before ends at 12"},
    {"EntryOverlap", [](Head& h) { h.tail[1].first_step = Step(11); },
     "entry begins at step 11, the one before ends at 12"},
    {"EntryOverflow",
     [](Head& h) {
       h.tail.resize(1);
       h.tail[0].first_step = Step(std::numeric_limits<std::uint64_t>::max() - 1);
     },
     "overflows"},
    {"TailEnd", [](Head& h) { h.next_step = Step(17); }, "tail ends at step 16, next step is 17"},
    {"ManyRuns", [](Head& h) { h.tail[0].ranks = 65; },
     "a run table of 72 bytes; 65 ranks and 2 steps allow 0"},
    {"RunsOverflow",
     [](Head& h) {
       h.tail[0].ranks = 0x80000001;  // x 2 steps = 2 in 32 bits.
     },
     "2147483649 ranks and 2 steps allow 0"},
    {"LongRunTable", [](Head& h) { h.tail[0].run_table.resize(73); },
     "a run table of 73 bytes; 2 ranks and 2 steps allow 72"},
    {"RunTableOfNoRanks", [](Head& h) { h.tail[0].ranks = 0; },
     "a run table of 72 bytes; 0 ranks and 2 steps allow 0"},
    {"Uncovered", [](Head& h) { h.first_step = Step(1); },
     "steps from 1 are kept, rows begin at 2"},
    {"NothingKept",
     [](Head& h) {
       h.tail.clear();
       h.segments.clear();
     },
     "steps from 7 are kept, rows begin at 16"},
};

const BrokenHead kBrokenEvents[] = {
    {"IntentOfNoSlot", [](Head& h) { h.trim_intent->slot = Slot(0); }, "intent of slot 0 to trim"},
    {"IntentOfGenesis", [](Head& h) { h.trim_intent->slot = Slot(1); }, "intent of slot 1 to trim"},
    {"IntentFromTheFuture", [](Head& h) { h.trim_intent->slot = Slot(10); },
     "intent of slot 10 to trim, in slot 9"},
    {"TopologyAboveNext", [](Head& h) { h.topologies[1].from_step = Step(17); },
     "topology from step 17, next step is 16"},
    {"TopologyOrder", [](Head& h) { std::swap(h.topologies[0], h.topologies[1]); },
     "topology from step 2 stands after one from step 12"},
    {"TopologyTwice", [](Head& h) { h.topologies[0].from_step = Step(12); },
     "topology from step 12 stands after one from step 12"},
    {"TopologyWithoutAxes", [](Head& h) { h.topologies[0].axes.clear(); }, "no axis is named"},
    {"TopologyOfNoAxis", [](Head& h) { h.topologies[0].axes = "xp=2"; }, "'xp=2' names no axis"},
    {"TopologyOfNoRanks", [](Head& h) { h.topologies[0] = {Step(2), 0, "dp=0"}; },
     "the axis dp has extent 0"},
    {"TopologySpelledOtherwise", [](Head& h) { h.topologies[1].axes = "pp=3 dp=1  cp=2 tp=04"; },
     "axes 'pp=3 dp=1  cp=2 tp=04' are written 'pp=3 dp=1 cp=2 tp=4'"},
    {"TopologyRanks", [](Head& h) { h.topologies[1].ranks = 24; },
     "axes 'pp=3 dp=1 cp=2 tp=4' have 2 HDP ranks, the row says 24"},
    {"MembershipOrder", [](Head& h) { std::swap(h.memberships[0], h.memberships[1]); },
     "membership from step 0 stands after one from step 14"},
    {"MembershipTwice", [](Head& h) { h.memberships[0].from_step = Step(14); },
     "membership from step 14 stands after one from step 14"},
    {"MembershipOfNobody", [](Head& h) { h.memberships[0].producer.clear(); },
     "not a producer's name"},
    {"MembershipTermZero", [](Head& h) { h.memberships[0].term = Term(0); },
     "membership from step 0 of term 0 in slot 9"},
    {"MembershipTermAbove", [](Head& h) { h.memberships[1].term = Term(10); },
     "membership from step 14 of term 10 in slot 9"},
    {"MembershipKeysTwice", [](Head& h) { h.memberships[1].inline_keys = Bytes(1); },
     "membership from step 14 has its keys inline and by reference"},
    {"MembershipKeysTooFew", [](Head& h) { h.memberships[1].ref->size_bytes = kFrameBytes - 1; },
     "membership from step 14 has its keys in 39 bytes; 40 to 16777256 are possible"},
    {"MembershipKeysTooMany",
     [](Head& h) { h.memberships[1].ref->size_bytes = kFrameBytes + (1u << 24) + 1; },
     "in 16777257 bytes"},
    {"SkippedBelowFirst", [](Head& h) { h.skipped[0] = Step(6); },
     "step 6 is skipped, the stream holds 7 to 16"},
    {"SkippedAtNext", [](Head& h) { h.skipped[1] = Step(16); },
     "step 16 is skipped, the stream holds 7 to 16"},
    {"SkippedOrder", [](Head& h) { std::swap(h.skipped[0], h.skipped[1]); },
     "skipped step 8 stands after 13"},
    {"SkippedTwice", [](Head& h) { h.skipped[0] = h.skipped[1]; },
     "skipped step 13 stands after 13"},
};

INSTANTIATE_TEST_SUITE_P(Events, HeadCodecRules, testing::ValuesIn(kBrokenEvents),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(HeadCodec, AcceptsEventsAtTheirBounds) {
  Head head = small_head();
  head.topologies[1].from_step = head.next_step;
  head.memberships[0].ref = MembershipRef{Seq(0), Nonce(0), kFrameBytes, 0};
  head.memberships[0].inline_keys.clear();
  head.memberships[1].from_step = Step(UINT64_MAX);
  head.memberships[1].ref->size_bytes = kFrameBytes + (1u << 24);
  head.skipped = {head.first_step, head.next_step - 1};
  head.trim_intent = TrimIntent{.step = Step(UINT64_MAX), .slot = head.slot};
  const auto stored = recode(head);
  ASSERT_TRUE(stored.is_ok()) << stored.status().to_string();
  EXPECT_EQ(stored->head, head);
}

INSTANTIATE_TEST_SUITE_P(All, HeadCodecRules, testing::ValuesIn(kBrokenHeads),
                         [](const auto& test) { return std::string(test.param.name); });

RC_GTEST_PROP(HeadCodec, ReadsEveryHeadBack, ()) {
  const Head head = *arbitrary_head();
  const Encoded encoded = encode_head(kTestUuid, head);
  const auto stored = decode_head(kTestUuid, head.slot, encoded.bytes);
  RC_ASSERT(stored.is_ok());
  RC_ASSERT(stored->head == head);
  RC_ASSERT(stored->crc == encoded.crc);
  RC_ASSERT(encode_head(kTestUuid, stored->head).bytes == encoded.bytes);
}

}  // namespace
}  // namespace batchloom::store
