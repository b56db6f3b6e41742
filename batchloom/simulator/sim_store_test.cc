// SPDX-License-Identifier: Apache-2.0
// Each fault: what the client is told, and what the bucket holds when all is over.
#include "batchloom/simulator/sim_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "batchloom/simulator/sim_lab_testing.h"

namespace batchloom::simulator {
namespace {

using objstore::Fault;
using objstore::FaultSettings;
using objstore::ObjectData;
using objstore::ObjectStore;
using objstore::Operation;
using objstore::PutCondition;
using objstore::PutOutcome;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kStoreSeeds = 60;

/// One create of k=a under `fault`: "what the client hears, what is stored in the end".
std::string create_under(Fault fault, std::uint64_t seed) {
  SimLab lab(seed, fault, Operation::kPut);
  std::string heard;
  lab.run({[&](SimProcess&, ObjectStore& client) {
    const auto reply = create(client, "k", "a");
    heard = !reply.is_ok()                           ? reply.status().to_string()
            : reply->outcome == PutOutcome::kApplied ? "applied"
            : reply->outcome == PutOutcome::kUnknown ? "unknown"
                                                     : "condition failed";
    heard = heard.substr(0, heard.find(':'));
  }});
  EXPECT_EQ(lab.injected(fault), 1U);
  return heard + (lab.stored("k") ? ", stored" : ", not stored");
}

/// One removal of the keys a and b under `fault`: what the client hears, and how many are left.
std::string remove_under(Fault fault, std::uint64_t seed) {
  SimLab lab(seed, fault, Operation::kRemove);
  lab.place("a", "1");
  lab.place("b", "2");
  std::string heard;
  lab.run({[&](SimProcess&, ObjectStore& client) {
    const auto replies = remove(client, {"a", "b"});
    if (!replies.is_ok()) {
      heard = to_string(replies.status().kind());
      return;
    }
    ASSERT_EQ(replies->size(), 2U);
    heard = std::to_string(std::ranges::count_if(*replies, &Status::is_ok)) + " removed";
  }});
  EXPECT_EQ(lab.injected(fault), 1U);
  return heard + ", " + std::to_string(lab.store().objects().size()) + " left";
}

std::set<std::string> all_seeds(std::string (*one)(Fault, std::uint64_t), Fault fault) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kStoreSeeds; ++seed) seen.insert(one(fault, seed));
  return seen;
}

TEST(SimStore, WithoutAFaultItIsABucket) {
  SimLab lab(1);
  lab.run({[&](SimProcess&, ObjectStore& client) {
    const auto made = create(client, "k", "a");
    ASSERT_EQ(made->outcome, PutOutcome::kApplied);
    EXPECT_EQ(create(client, "k", "b")->outcome, PutOutcome::kConditionFailed);
    const auto data = client.get("k", {}, {}).value();
    EXPECT_EQ(as_text(data->bytes), "a");
    EXPECT_EQ(data->etag, made->etag);
    EXPECT_EQ(client.head("k", {}).value()->size_bytes, 1U);
    EXPECT_EQ(client.head("none", {}).value(), std::nullopt);
    EXPECT_EQ(client.get("none", {}, {}).value(), std::nullopt);
    const auto matches = PutCondition::matches(*made->etag);
    EXPECT_EQ(put_bytes(client, "k", as_bytes("b"), matches, {})->outcome, PutOutcome::kApplied);
    EXPECT_EQ(put_bytes(client, "k", as_bytes("c"), matches, {})->outcome,
              PutOutcome::kConditionFailed);
    EXPECT_EQ(remove(client, {"k", "none"})->size(), 2U);
  }});
  EXPECT_THAT(lab.changes(), ElementsAre("k=a", "k=b", "k gone"));
  EXPECT_THAT(lab.store().faulted_calls(), IsEmpty());
}

TEST(SimStore, APutUnderEachFault) {
  const auto seen = [](Fault fault) { return all_seeds(create_under, fault); };
  EXPECT_THAT(seen(Fault::kLostRequest), ElementsAre("unknown, not stored"));
  EXPECT_THAT(seen(Fault::kLostReply), ElementsAre("unknown, stored"));
  EXPECT_THAT(seen(Fault::kLateApply), ElementsAre("unknown, stored"));
  EXPECT_THAT(seen(Fault::kDoubleApply), ElementsAre("applied, stored"));
  EXPECT_THAT(seen(Fault::kConflict409), ElementsAre("conflict, not stored"));
  EXPECT_THAT(seen(Fault::kThrottled429), ElementsAre("unavailable, not stored"));
  EXPECT_THAT(seen(Fault::kServerError503),
              ElementsAre("unavailable, not stored", "unknown, stored"));
  EXPECT_THAT(seen(Fault::kErrorInsideOk), ElementsAre("unknown, not stored", "unknown, stored"));
}

TEST(SimStore, ARemovalUnderEachFault) {
  const auto seen = [](Fault fault) { return all_seeds(remove_under, fault); };
  EXPECT_THAT(seen(Fault::kLostRequest), ElementsAre("unavailable, 2 left"));
  EXPECT_THAT(seen(Fault::kLostReply), ElementsAre("unavailable, 0 left"));
  EXPECT_THAT(seen(Fault::kLateApply), ElementsAre("unavailable, 0 left"));
  EXPECT_THAT(seen(Fault::kDoubleApply), ElementsAre("2 removed, 0 left"));
  EXPECT_THAT(seen(Fault::kThrottled429), ElementsAre("unavailable, 2 left"));
  EXPECT_THAT(seen(Fault::kServerError503),
              ElementsAre("unavailable, 0 left", "unavailable, 2 left"));
  EXPECT_THAT(seen(Fault::kErrorInsideOk),
              ElementsAre("0 removed, 2 left", "1 removed, 1 left", "2 removed, 0 left"));
}

TEST(SimStore, AReadThatIsLostOrRefusedIsUnavailable) {
  for (const Fault fault :
       {Fault::kLostRequest, Fault::kLostReply, Fault::kThrottled429, Fault::kServerError503}) {
    FaultSettings faults{.rates = {{fault, Operation::kGet, 1.0},
                                   {fault, Operation::kHead, 1.0},
                                   {fault, Operation::kList, 1.0}}};
    SimLab lab(1, faults);
    lab.place("k", "a");
    lab.run({[&](SimProcess&, ObjectStore& client) {
      EXPECT_TRUE(client.get("k", {}, {}).is(ErrorKind::kUnavailable));
      EXPECT_TRUE(client.head("k", {}).is(ErrorKind::kUnavailable));
      EXPECT_TRUE(client.list("k", "", {}).value()->next_page({}).is(ErrorKind::kUnavailable));
    }});
    EXPECT_EQ(lab.injected(fault), 3U);
    EXPECT_EQ(lab.store().faulted_calls().size(), 3U);
  }
}

TEST(SimStore, DistortedReadsLeaveTheObjectAsItIs) {
  const std::string text = "abcdefgh";
  for (const Fault fault : {Fault::kShortBody, Fault::kBitFlip, Fault::kWrongRange}) {
    std::uint64_t spoilt = 0;
    for (std::uint64_t seed = 0; seed < kStoreSeeds; ++seed) {
      SimLab lab(seed, fault, Operation::kGet);
      lab.place("k", text);
      std::string got;
      lab.run({[&](SimProcess&, ObjectStore& client) {
        const ObjectData data = client.get("k", {.offset = 2, .length = 4}, {}).value().value();
        EXPECT_EQ(data.object_size_bytes, text.size());
        got = as_text(data.bytes);
      }});
      EXPECT_EQ(lab.stored("k"), text);
      EXPECT_EQ(lab.injected(fault), got == "cdef" ? 0U : 1U) << "only what had an effect counts";
      spoilt += lab.injected(fault);

      int bits = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        bits += std::popcount(static_cast<unsigned char>(got[i] ^ text[2 + i]));
      if (fault == Fault::kShortBody) {
        EXPECT_TRUE(got.size() < 4 && bits == 0) << got;
      } else if (fault == Fault::kBitFlip) {
        EXPECT_TRUE(got.size() == 4 && bits == 1) << got;
      } else {
        EXPECT_TRUE(got.size() == 4 && (text + text).find(got) != std::string::npos) << got;
      }
    }
    EXPECT_GT(spoilt, kStoreSeeds / 2);
  }
}

TEST(SimStore, HealingEndsAllFaults) {
  SimLab lab(1, Fault::kLostRequest, Operation::kPut);
  lab.store().heal();
  lab.run({[&](SimProcess&, ObjectStore& client) {
    EXPECT_EQ(create(client, "k", "a")->outcome, PutOutcome::kApplied);
  }});
  EXPECT_EQ(lab.injected(Fault::kLostRequest), 0U);
}
}  // namespace
}  // namespace batchloom::simulator
