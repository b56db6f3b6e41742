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

TEST(Head, AStateObjectCarriesTheNameOfItsWriter) {
  const DataName expected{DataKind::kState, "beta", Term(4), Seq(1), Nonce(77)};
  EXPECT_EQ(small_head().producers[1].state_object(), expected);
}

TEST(Head, AStateThatStandsInlineHasNoObject) {
  EXPECT_DEATH(static_cast<void>(small_head().producers[0].state_object()), "alpha stands inline");
}

}  // namespace
}  // namespace batchloom::store
