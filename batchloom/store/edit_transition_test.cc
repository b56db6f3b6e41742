// SPDX-License-Identifier: Apache-2.0
// What a slot without a writer may do to a head, and what it may not.
#include "batchloom/store/edit_transition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "batchloom/store/event_proposal.h"
#include "batchloom/store/head_transition.h"
#include "batchloom/store/store_testing.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Slot 9: steps 7 to 15 in three segments and two packs, about to be trimmed to step 20; it has
// ended, has topologies from 2 and from 12, and steps 8 and 13 are skipped.
Head before_edit() {
  return small_head();
}

Head nobodys(std::optional<Head> head) {
  head->writer = {};
  head->txid = {.high = 3, .low = 4};
  head->previous_crc = 99;
  return *std::move(head);
}

Head skip() {
  return nobodys(propose_skip(before_edit(), Step(9), {}).value());
}
Head set_topology() {
  return nobodys(
      propose_topology(before_edit(), model::Topology::parse("cp=8").value(), {}).value());
}
// By the session of "beta", which has term 4 and batch 2 next.
MembershipRow membership(std::uint64_t from_step) {
  return {.from_step = Step(from_step),
          .digest = {.high = 5, .low = 6},
          .producer = "beta",
          .term = Term(4),
          .inline_keys = {},
          .ref = MembershipRef{Seq(2), Nonce(79), 6000, 7}};
}
Head set_membership() {
  return nobodys(propose_membership(before_edit(), membership(16), {}).value());
}
Head reopen() {
  return nobodys(propose_reopen(before_edit()));
}
Head announce() {
  return nobodys(propose_trim_intent(before_edit(), Step(9)));
}
Head withdraw() {
  return nobodys(withdraw_trim_intent(before_edit()));
}
Head trim() {
  return nobodys(complete_trim(before_edit(), Step(12), {}));
}

TEST(EditTransition, AcceptsWhatEventsAndTrimsDo) {
  for (const auto& edited :
       {skip(), set_topology(), set_membership(), reopen(), announce(), withdraw(), trim()}) {
    EXPECT_THAT(transition_problems(before_edit(), edited), IsEmpty());
  }
  Head open = before_edit();
  open.ended = false;
  EXPECT_THAT(transition_problems(open, nobodys(propose_end(open))), IsEmpty());
  open.trim_intent.reset();
  EXPECT_THAT(transition_problems(open, nobodys(propose_trim_intent(open, Step(9)))), IsEmpty());
}

TEST(EditTransition, AcceptsATrimToAnyStepThatWasAnnounced) {
  for (std::uint64_t step = 0; step < 25; ++step) {
    const Head trimmed = nobodys(complete_trim(before_edit(), Step(step), {}));
    EXPECT_THAT(transition_problems(before_edit(), trimmed), IsEmpty()) << step;
  }
}

TEST(EditTransition, AcceptsATopologyThatHeldBefore) {
  Head twice = before_edit();
  twice.topologies.push_back({Step(16), 8, "cp=8"});
  const auto topology = model::Topology::parse(before_edit().topologies[1].axes).value();
  const Head back = nobodys(propose_topology(twice, topology, {}).value());
  EXPECT_EQ(back.topologies, before_edit().topologies);
  EXPECT_THAT(transition_problems(twice, back), IsEmpty());
}

TEST(EditTransition, AcceptsMembershipsThatReplaceOthers) {
  const Head set = set_membership();
  Head another = set;
  another.slot = before_edit().slot;
  MembershipRow row = membership(16);
  row.digest.low = 7;
  EXPECT_THAT(transition_problems(another, nobodys(propose_membership(another, row, {}).value())),
              IsEmpty());
  row.digest = before_edit().memberships[1].digest;  // In force.
  const Head back = nobodys(propose_membership(another, row, {}).value());
  EXPECT_EQ(back.memberships, before_edit().memberships);
  EXPECT_THAT(transition_problems(another, back), IsEmpty());
}

/// An edit that breaks one rule, and all that is said about it.
struct BadEdit {
  const char* name;
  Head (*good)();
  std::function<void(Head&)> breaks;
  const char* reason;
};

class EditTransitionRefuses : public testing::TestWithParam<BadEdit> {};

TEST_P(EditTransitionRefuses, AndSaysWhy) {
  Head after = GetParam().good();
  GetParam().breaks(after);
  EXPECT_THAT(transition_problems(before_edit(), after), ElementsAre(HasSubstr(GetParam().reason)));
}

Head nothing() {
  return nobodys(successor(before_edit()));
}

const BadEdit kBadEdits[] = {
    {"Nothing", nothing, [](Head&) {}, "neither an event nor a trim"},
    {"ACommit", nothing,
     [](Head& h) {
       ++h.next_step;
       ++h.tail.back().steps;
     },
     "neither an event nor a trim"},
    {"ARow", nothing, [](Head& h) { ++h.producers[0].next_seq; }, "neither an event nor a trim"},
    {"FirstStepAlone", nothing, [](Head& h) { h.first_step = Step(8); },
     "first step moves from 7 to 8, but no trim ends here"},
    {"TwoSkips", skip, [](Head& h) { h.skipped.push_back(Step(15)); },
     "2 more steps are skipped; an event skips one"},
    {"SkipTakenBack", nothing, [](Head& h) { h.skipped.pop_back(); }, "0 more steps are skipped"},
    {"SkipInPlaceOfAnother", nothing, [](Head& h) { h.skipped[1] = Step(14); },
     "skips step 14, but what is skipped is not what that makes of slot 9's"},
    {"SkipOutside", nothing, [](Head& h) { h.skipped.push_back(Step(16)); },
     "step 16 cannot be skipped"},
    {"SkipAndReopen", skip, [](Head& h) { h.ended = false; },
     "skips step 9, but the end is not what that makes"},
    {"SkipAndTail", skip, [](Head& h) { ++h.tail[0].size_bytes; },
     "skips step 9, but the tail is not what that makes"},
    {"TopologiesGone", set_topology, [](Head& h) { h.topologies.clear(); },
     "the topologies are gone"},
    {"TopologyLost", set_topology, [](Head& h) { h.topologies.erase(h.topologies.begin()); },
     "sets the topology 'cp=8', but the topologies are not what that makes"},
    {"TopologyAtAnotherStep", set_topology, [](Head& h) { h.topologies[2].from_step = Step(15); },
     "sets the topology 'cp=8', but the topologies are not what that makes"},
    {"TopologyOfOtherRanks", set_topology, [](Head& h) { h.topologies[2].ranks = 7; },
     "sets the topology 'cp=8', but the topologies are not what that makes"},
    {"OldTopologyChanged", nothing, [](Head& h) { h.topologies[0] = {Step(2), 3, "dp=3"}; },
     "sets the topology 'pp=3 dp=1 cp=2 tp=4', although that was so already"},
    {"TopologyOfNoAxes", set_topology, [](Head& h) { h.topologies[2].axes = "x"; }, "'x'"},
    {"MembershipsGone", set_membership, [](Head& h) { h.memberships.clear(); },
     "0 memberships are new and 2 are gone; an event sets one"},
    {"TwoMemberships", set_membership, [](Head& h) { h.memberships.push_back(membership(30)); },
     "2 memberships are new and 0 are gone; an event sets one"},
    {"MembershipLost", set_membership, [](Head& h) { h.memberships.erase(h.memberships.begin()); },
     "sets the membership from step 16, but the memberships are not what that makes"},
    {"MembershipOfACommittedStep", set_membership,
     [](Head& h) { h.memberships[2].from_step = Step(15); },
     "membership cannot change from step 15 on"},
    {"MembershipInForceChanged", nothing, [](Head& h) { h.memberships[1].digest.low = 9; },
     "membership cannot change from step 14 on"},
    {"MembershipOfAnOlderTerm", set_membership, [](Head& h) { h.memberships[2].term = Term(3); },
     "sets the membership from step 16 in term 3 of beta, which had term 4"},
    {"MembershipOfNobody", set_membership, [](Head& h) { h.memberships[2].producer = "old"; },
     "sets the membership from step 16 in term 4 of old, which had no row"},
    {"MembershipOfAnEarlierBatch", set_membership,
     [](Head& h) { h.memberships[2].ref->seq = Seq(1); },
     "by keys that were stored before batch 1, but batch 2 is next"},
    {"MembershipAndReopen", set_membership, [](Head& h) { h.ended = false; },
     "sets the membership from step 16, but the end is not what that makes"},
    {"MembershipThatHeld", nothing,
     [](Head& h) {
       h.memberships.push_back(membership(20));
       h.memberships[2].digest = h.memberships[1].digest;
     },
     "sets the membership from step 20, although that was so already"},
    {"ReopenAndSegments", reopen, [](Head& h) { ++h.segments[0][0].crc; },
     "reopens the stream, but the segments are not what that makes"},
    {"ReopenAndRow", reopen, [](Head& h) { h.producers.pop_back(); },
     "reopens the stream, but the rows of producers are not"},
    {"ReopenAndStep", reopen, [](Head& h) { ++h.next_step; },
     "reopens the stream, but the next step is not"},
    {"IntentOfAnotherSlot", announce, [](Head& h) { h.trim_intent->slot = Slot(9); },
     "announces a trim to step 9, but the trim intent is not"},
    {"AnnounceAndTrim", announce, [](Head& h) { h.first_step = Step(8); },
     "announces a trim to step 9, but the first step is not"},
    {"TrimBeyondTheIntent", trim, [](Head& h) { h.first_step = Step(21); },
     "first step moves from 7 to 21, but only a trim to 20 was announced"},
    {"TrimGoesBack", trim,
     [](Head& h) {
       h = nobodys(complete_trim(before_edit(), Step(6), {}));
       h.first_step = Step(6);
     },
     "trims to step 6, but the first step is not"},
    {"TrimKeepsTail", trim, [](Head& h) { h.tail = before_edit().tail; },
     "trims to step 12, but the tail is not"},
    {"TrimKeepsSegments", trim, [](Head& h) { h.segments = before_edit().segments; },
     "trims to step 12, but the segments are not"},
    {"TrimKeepsTopology", trim, [](Head& h) { h.topologies = before_edit().topologies; },
     "trims to step 12, but the topologies are not"},
    {"TrimKeepsSkip", trim, [](Head& h) { h.skipped = before_edit().skipped; },
     "trims to step 12, but what is skipped is not"},
    {"TrimLosesTooMuch", trim, [](Head& h) { h.tail.clear(); },
     "trims to step 12, but the tail is not"},
};

INSTANTIATE_TEST_SUITE_P(BadEdits, EditTransitionRefuses, testing::ValuesIn(kBadEdits),
                         [](const auto& edit) { return std::string(edit.param.name); });

TEST(EditTransition, NamesEveryPartThatDiffers) {
  Head after = skip();
  after.ended = false;
  after.producers.clear();
  EXPECT_THAT(transition_problems(before_edit(), after),
              ElementsAre(HasSubstr("the end"), HasSubstr("the rows of producers")));
}

}  // namespace
}  // namespace batchloom::store
