// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/event_proposal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/store/codec.h"
#include "batchloom/store/store_testing.h"
#include "batchloom/store/trim.h"

namespace batchloom::store {
namespace {

using testing::HasSubstr;

/// Slot 5 with steps 4 to 9.
Head head_of_steps() {
  Head head;
  head.slot = Slot(5);
  head.first_step = Step(4);
  head.next_step = Step(10);
  return head;
}

Head skip(const Head& head, std::uint64_t step) {
  return propose_skip(head, Step(step), {}).value().value();
}

Head set(const Head& head, std::string_view axes) {
  return propose_topology(head, topology_of(axes), {}).value().value();
}

bool is_set(const Head& head, std::string_view axes) {
  return !propose_topology(head, topology_of(axes), {}).value();
}

TEST(ProposeSkip, KeepsThemInOrderAndChangesNothingElse) {
  Head head = head_of_steps();
  for (const std::uint64_t step : {7U, 4U, 9U, 5U}) head = skip(head, step);
  EXPECT_EQ(head.skipped, (std::vector{Step(4), Step(5), Step(7), Step(9)}));
  EXPECT_EQ(head.slot, Slot(9));
  head.skipped.clear();
  head.slot = Slot(5);
  EXPECT_EQ(head, head_of_steps());
}

TEST(ProposeSkip, IsTrueAlreadyTheSecondTime) {
  EXPECT_EQ(propose_skip(skip(head_of_steps(), 7), Step(7), {}).value(), std::nullopt);
}

TEST(ProposeSkip, NeedsAStepOfTheStream) {
  for (const std::uint64_t step : {0U, 3U, 10U, 1000U}) {
    const auto refused = propose_skip(head_of_steps(), Step(step), {});
    EXPECT_TRUE(refused.is(ErrorKind::kNotFound)) << step;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("slot 5 holds steps 4 to 10"));
  }
}

TEST(ProposeTopology, HoldsFromTheNextStepOn) {
  Head head = set(head_of_steps(), "pp=2 dp=4");
  EXPECT_EQ(head.topologies, (std::vector<TopologyRow>{{Step(10), 4, "pp=2 dp=4"}}));
  head.next_step = Step(12);
  head = set(head, "dp=4 cp=3");
  EXPECT_EQ(head.topologies,
            (std::vector<TopologyRow>{{Step(10), 4, "pp=2 dp=4"}, {Step(12), 12, "dp=4 cp=3"}}));
  head.topologies.clear();
  head.next_step = Step(10);
  head.slot = Slot(5);
  EXPECT_EQ(head, head_of_steps());
}

TEST(ProposeTopology, IsTrueAlreadyWhereItHolds) {
  Head head = set(head_of_steps(), "pp=2 dp=4");
  EXPECT_TRUE(is_set(head, "pp=2 dp=4"));
  head.next_step = Step(20);
  EXPECT_TRUE(is_set(head, "pp=2 dp=4"));
  EXPECT_FALSE(is_set(head, "dp=4 pp=2")) << "the order of axes says where ranks are";
  EXPECT_FALSE(is_set(head, "dp=4"));
}

TEST(ProposeTopology, ReplacesOneSinceWhichNothingWasAppended) {
  Head head = set(head_of_steps(), "dp=2");
  head.next_step = Step(12);
  head = set(set(head, "dp=4"), "dp=8");
  EXPECT_EQ(head.topologies,
            (std::vector<TopologyRow>{{Step(10), 2, "dp=2"}, {Step(12), 8, "dp=8"}}));
  EXPECT_EQ(set(head, "dp=2").topologies, (std::vector<TopologyRow>{{Step(10), 2, "dp=2"}}))
      << "as it was before";
}

TEST(ProposeTopology, NeedsAxes) {
  EXPECT_TRUE(propose_topology(head_of_steps(), {}, {}).is(ErrorKind::kInvalid));
}

/// Keys of one byte.
MembershipRow membership(std::uint64_t from_step, std::uint8_t keys) {
  return {.from_step = Step(from_step),
          .digest = {.high = 0, .low = keys},
          .producer = "p",
          .term = Term(2),
          .inline_keys = Bytes(1, std::byte{keys}),
          .ref = {}};
}

Head set_keys(const Head& head, std::uint64_t from_step, std::uint8_t keys) {
  return propose_membership(head, membership(from_step, keys), {}).value().value();
}

bool are_set(const Head& head, std::uint64_t from_step, std::uint8_t keys) {
  return !propose_membership(head, membership(from_step, keys), {}).value();
}

TEST(ProposeMembership, HoldsFromItsStepOnAndChangesNothingElse) {
  Head head = set_keys(set_keys(set_keys(head_of_steps(), 20, 2), 10, 1), 30, 3);
  EXPECT_EQ(head.memberships,
            (std::vector{membership(10, 1), membership(20, 2), membership(30, 3)}));
  head.memberships.clear();
  head.slot = Slot(5);
  EXPECT_EQ(head, head_of_steps());
}

TEST(ProposeMembership, NeedsAStepThatIsNotCommitted) {
  const auto refused = propose_membership(head_of_steps(), membership(9, 1), {});
  EXPECT_TRUE(refused.is(ErrorKind::kInvalid));
  EXPECT_EQ(refused.status().message(),
            "membership cannot change from step 9 on: steps below 10 are committed in slot 5; "
            "change it from step 10 or a later one on");
}

TEST(ProposeMembership, IsTrueAlreadyWhereTheyHold) {
  Head head = set_keys(head_of_steps(), 10, 1);
  EXPECT_TRUE(are_set(head, 10, 1));
  head.next_step = Step(15);
  EXPECT_TRUE(are_set(head, 10, 1)) << "whoever lost the reply may ask again";
  EXPECT_TRUE(are_set(head, 12, 1)) << "though that step is committed";
  EXPECT_TRUE(are_set(head, 40, 1));
  EXPECT_TRUE(propose_membership(head, membership(12, 2), {}).is(ErrorKind::kInvalid));
}

TEST(ProposeMembership, ReplacesWhatIsNotInForce) {
  const Head head = set_keys(head_of_steps(), 10, 1);
  EXPECT_EQ(set_keys(head, 10, 2).memberships, std::vector{membership(10, 2)});
  const Head later = set_keys(head, 20, 2);
  EXPECT_EQ(set_keys(later, 20, 3).memberships,
            (std::vector{membership(10, 1), membership(20, 3)}));
}

TEST(ProposeMembership, RowsThatMayBeReplacedDoNotCountForOthers) {
  const Head head = set_keys(set_keys(head_of_steps(), 10, 1), 20, 1);
  EXPECT_EQ(head.memberships.size(), 2u) << "what holds from 10 on may become something else";
  EXPECT_EQ(set_keys(head, 10, 2).memberships, (std::vector{membership(10, 2), membership(20, 1)}));
}

TEST(ProposeMembership, WhatIsInForceMayBeWantedAgain) {
  Head head = set_keys(head_of_steps(), 10, 1);
  head.next_step = Step(15);
  head = set_keys(head, 20, 2);
  EXPECT_EQ(set_keys(head, 20, 1).memberships, std::vector{membership(10, 1)});
}

TEST(ProposeEnd, AndReopen) {
  const Head head = head_of_steps();
  EXPECT_EQ(propose_reopen(head), std::nullopt);
  const Head ended = propose_end(head).value();
  Head expected = successor(head);
  expected.ended = true;
  EXPECT_EQ(ended, expected);
  EXPECT_EQ(propose_end(ended), std::nullopt);
  EXPECT_EQ(propose_reopen(ended), successor(successor(head)));
}

TEST(EventBudget, IsExhaustedUntilStepsAreTrimmed) {
  Head head = head_of_steps();
  head.next_step = Step(1000);
  const Limits limits{.event_bytes =
                          20 * encoded_bound(Step()) + encoded_bound(TopologyRow{{}, 4, "dp=4"})};
  head = propose_topology(head, topology_of("dp=4"), limits).value().value();
  for (std::uint64_t step = 100; step < 120; ++step) {
    head = propose_skip(head, Step(step), limits).value().value();
  }
  const auto one_more = propose_skip(head, Step(200), limits);
  EXPECT_TRUE(one_more.is(ErrorKind::kExhausted));
  EXPECT_THAT(std::string(one_more.status().message()), HasSubstr("trim first"));
  EXPECT_THAT(std::string(one_more.status().message()), HasSubstr("m/00000000000000000027"));
  EXPECT_EQ(propose_skip(head, Step(119), limits).value(), std::nullopt) << "needs no room";
  EXPECT_TRUE(propose_topology(head, topology_of("dp=5"), limits).is_ok()) << "takes another's";
  ++head.next_step;
  EXPECT_TRUE(propose_topology(head, topology_of("dp=5"), limits).is(ErrorKind::kExhausted));
  EXPECT_TRUE(propose_membership(head, membership(2000, 1), limits).is(ErrorKind::kExhausted));
  head = complete_trim(head, Step(101), {});
  EXPECT_TRUE(propose_skip(head, Step(200), limits).is_ok()) << "one went";
}

}  // namespace
}  // namespace batchloom::store
