// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/head.h"

#include <gtest/gtest.h>

#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

TEST(Head, FindsProducersByName) {
  Head head = small_head();
  ASSERT_NE(head.find_producer("alpha"), nullptr);
  EXPECT_EQ(head.find_producer("alpha")->next_seq, Seq(13));
  head.find_producer("beta")->finished = true;
  EXPECT_TRUE(head.producers[1].finished);
  for (const std::string_view name : {"", "a", "alphb", "alpha2", "gamma"}) {
    EXPECT_EQ(head.find_producer(name), nullptr) << name;
  }
  EXPECT_EQ(Head().find_producer("alpha"), nullptr);
}

TEST(Head, ATopologyHoldsUntilTheNext) {
  const Head head = small_head();
  EXPECT_EQ(head.topology_at(Step(1)), nullptr);
  for (const std::uint64_t step : {2U, 3U, 11U}) {
    EXPECT_EQ(head.topology_at(Step(step)), &head.topologies[0]) << step;
  }
  for (const std::uint64_t step : {12U, 16U, 1000U}) {
    EXPECT_EQ(head.topology_at(Step(step)), &head.topologies[1]) << step;
  }
  EXPECT_EQ(Head().topology_at(Step(0)), nullptr);
}

TEST(Head, AMembershipHoldsUntilTheNext) {
  const Head head = small_head();
  for (const std::uint64_t step : {0U, 13U}) {
    EXPECT_EQ(head.membership_at(Step(step)), &head.memberships[0]) << step;
  }
  for (const std::uint64_t step : {14U, 1000U}) {
    EXPECT_EQ(head.membership_at(Step(step)), &head.memberships[1]) << step;
  }
  EXPECT_EQ(Head().membership_at(Step(0)), nullptr);
}

TEST(Head, AMembershipObjectCarriesTheNameOfItsSession) {
  const DataName expected{DataKind::kMembership, "beta", Term(4), Seq(1), Nonce(78)};
  EXPECT_EQ(small_head().memberships[1].object(), expected);
  EXPECT_DEATH(static_cast<void>(small_head().memberships[0].object()), "keys stand inline");
}

TEST(Head, KnowsWhatIsSkipped) {
  for (std::uint64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(small_head().is_skipped(Step(step)), step == 8 || step == 13) << step;
  }
}

TEST(Head, ASuccessorCarriesEverythingOver) {
  Head expected = small_head();
  expected.slot = Slot(10);
  EXPECT_EQ(successor(small_head()), expected);
}

TEST(Head, AStateObjectCarriesTheNameOfItsWriter) {
  const DataName expected{DataKind::kState, "beta", Term(4), Seq(1), Nonce(77)};
  EXPECT_EQ(small_head().producers[1].state_object(), expected);
}

TEST(Head, AStateThatStandsInlineHasNoObject) {
  EXPECT_DEATH(static_cast<void>(small_head().producers[0].state_object()), "alpha stands inline");
}

}  // namespace
}  // namespace batchloom::store
