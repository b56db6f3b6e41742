// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/stream_inventory.h"

#include <gmock/gmock.h>

#include "batchloom/store/trim_fixture_testing.h"

namespace batchloom::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class Inventory : public TrimTest {
 protected:
  StreamInventory list() { return StreamInventory::list(*other_, {}).value(); }
  StreamInventory list(const std::vector<std::string_view>& prefixes) {
    return StreamInventory::list(*other_, prefixes, {}).value();
  }
  static std::vector<std::pair<DataName, bool>> unclaimed_data(const StreamInventory& inventory) {
    std::vector<std::pair<DataName, bool>> found;
    EXPECT_TRUE(inventory
                    .for_each_unclaimed([&](const DataName& name, bool trimmed) {
                      found.emplace_back(name, trimmed);
                      return Status::ok();
                    })
                    .is_ok());
    return found;
  }
};

TEST_F(Inventory, CountsPinsAndCursorsAndCallsThemNotForeign) {
  pin(Step(0), "a");
  pin(Step(0), "b");
  open_live_cursor(*other_, "g", Step(0), {}).value();
  put("pin/g/readme", to_bytes("x"));
  const StreamInventory inventory = list();
  EXPECT_EQ(inventory.pins(), 2u);
  EXPECT_EQ(inventory.live_cursors(), 1u);
  EXPECT_THAT(inventory.foreign(), ElementsAre("pin/g/readme"));
}

TEST_F(Inventory, ListsWhatLiesBelowThePrefixes) {
  grow(10);
  pin(Step(0));
  const StreamInventory inventory = list({"s/", "d/"});
  EXPECT_THAT(inventory.slots(), IsEmpty());
  EXPECT_EQ(inventory.pins(), 0u);
  EXPECT_EQ(inventory.unclaimed().batches, 10u);
  EXPECT_EQ(inventory.unclaimed().segments, keys("s/").size());
  EXPECT_EQ(list({"m/"}).slots().size(), keys("m/").size());
  EXPECT_EQ(list({}).unclaimed().batches, 0u);
}

TEST_F(Inventory, WhatIsMarkedIsNotClaimed) {
  const DataName one{DataKind::kBatch, "p", Term(2), Seq(0), Nonce(1)};
  const DataName two{DataKind::kBatch, "p", Term(2), Seq(1), Nonce(2)};
  const DataName three{DataKind::kState, "q", Term(1), Seq(0), Nonce(3)};
  for (const DataName& name : {one, two, three}) put(data_key(name), to_bytes("x"));
  StreamInventory inventory = list();
  inventory.mark_trimmed(two);
  inventory.mark_trimmed({DataKind::kBatch, "p", Term(9), Seq(9), Nonce(9)});
  inventory.mark_trimmed({DataKind::kBatch, "z", Term(2), Seq(0), Nonce(1)});
  EXPECT_THAT(unclaimed_data(inventory),
              testing::UnorderedElementsAre(Pair(one, false), Pair(two, true), Pair(three, false)));
  EXPECT_FALSE(inventory.claim(one)->again);
  EXPECT_TRUE(inventory.claim(one)->again);
  EXPECT_FALSE(inventory.claim(two)->again);
  EXPECT_THAT(unclaimed_data(inventory), ElementsAre(Pair(three, false)));
}

TEST_F(Inventory, TellsKindsApart) {
  const Nonce nonce(1);
  const DataName state{DataKind::kState, "p", Term(2), Seq(0), nonce};
  const DataName membership{DataKind::kMembership, "p", Term(2), Seq(0), nonce};
  for (const DataName& name : {state, membership}) put(data_key(name), to_bytes("x"));
  StreamInventory inventory = list();
  EXPECT_EQ(inventory.unclaimed().states, 1u);
  EXPECT_EQ(inventory.unclaimed().memberships, 1u);
  EXPECT_EQ(inventory.unclaimed().batches, 0u);
  EXPECT_FALSE(inventory.claim(state)->again);
  EXPECT_EQ(inventory.unclaimed().memberships, 1u);
  EXPECT_FALSE(inventory.claim({DataKind::kBatch, "p", Term(2), Seq(0), nonce}));
  EXPECT_THAT(unclaimed_data(inventory), ElementsAre(Pair(membership, false)));
}

TEST_F(Inventory, AVisitEndsWithAnError) {
  grow(10);
  const StreamInventory inventory = list();
  int visited = 0;
  EXPECT_TRUE(inventory
                  .for_each_unclaimed([&](const DataName&, bool) {
                    ++visited;
                    return Status::cancelled("enough");
                  })
                  .is(ErrorKind::kCancelled));
  EXPECT_TRUE(inventory
                  .for_each_unclaimed([&](const SegmentName&) {
                    ++visited;
                    return Status::cancelled("enough");
                  })
                  .is(ErrorKind::kCancelled));
  EXPECT_EQ(visited, 2);
}

}  // namespace
}  // namespace batchloom::store
