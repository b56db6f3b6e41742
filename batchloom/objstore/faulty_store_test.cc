// SPDX-License-Identifier: Apache-2.0
// Each fault: what the caller is told, and what the store holds afterwards.
#include "batchloom/objstore/faulty_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/check_run.h"
#include "batchloom/objstore/memory_store.h"

namespace batchloom::objstore {
namespace {

/// Late applies wait until the store is destroyed: no test lives that long.
constexpr Duration kAges = std::chrono::hours(10'000);

class FaultyStoreTest : public testing::Test {
 protected:
  /// Every call of `operation` meets `fault`.
  void make(Fault fault, Operation operation, std::uint64_t seed = 1) {
    const auto plan =
        FaultPlan::make({.seed = seed, .rates = {{fault, operation, 1.0}}, .max_delay = kAges});
    store_ = std::make_unique<FaultyStore>(memory_, *runtime_, plan.value());
  }

  void write(std::string_view key, ByteSpan bytes) {
    ASSERT_TRUE(put_bytes(memory_, key, bytes, PutCondition::none(), {}).is_ok());
  }
  /// What the store behind the faults holds at `key`.
  std::optional<std::string> stored(std::string_view key) {
    const auto data = memory_.get(key, {}, {}).value();
    if (!data) return std::nullopt;
    return std::string(as_text(data->bytes));
  }
  Result<PutReply> create(std::string_view key, std::string_view text) {
    return put_bytes(*store_, key, as_bytes(text), PutCondition::absent(), {});
  }
  ObjectData read(std::string_view key, ByteRange range) {
    return store_->get(key, range, {}).value().value();
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  MemoryStore memory_{*runtime_};
  std::unique_ptr<FaultyStore> store_;
};

TEST_F(FaultyStoreTest, WithoutAFaultCallsPass) {
  FaultyStore store(memory_, *runtime_, FaultPlan());
  ASSERT_TRUE(put_bytes(store, "k", as_bytes("a"), PutCondition::absent(), {}).is_ok());
  EXPECT_EQ(stored("k"), "a");
  for (const Fault fault : kAllFaults) EXPECT_EQ(store.injected(fault), 0U);
}

TEST_F(FaultyStoreTest, LostRequest) {
  make(Fault::kLostRequest, Operation::kPut);
  EXPECT_EQ(create("k", "a")->outcome, PutOutcome::kUnknown);
  EXPECT_EQ(stored("k"), std::nullopt);
  EXPECT_EQ(store_->injected(Fault::kLostRequest), 1U);
  write("k", as_bytes("a"));
  for (const Operation operation : kAllOperations) {
    make(Fault::kLostRequest, operation);
    const std::vector<std::string> keys = {"k"};
    const bool fails = store_->get("k", {}, {}).is(ErrorKind::kUnavailable) ||
                       store_->head("k", {}).is(ErrorKind::kUnavailable) ||
                       store_->remove(keys, {}).is(ErrorKind::kUnavailable) ||
                       store_->list({}, {}, {}).value()->next_page({}).is(ErrorKind::kUnavailable);
    EXPECT_EQ(fails, operation != Operation::kPut) << to_string(operation);
  }
}

TEST_F(FaultyStoreTest, LostReply) {
  make(Fault::kLostReply, Operation::kPut);
  const auto reply = create("k", "a");
  EXPECT_EQ(reply->outcome, PutOutcome::kUnknown);
  EXPECT_EQ(reply->detail, "injected lost_reply");
  EXPECT_EQ(stored("k"), "a");

  make(Fault::kLostReply, Operation::kRemove);
  const std::vector<std::string> keys = {"k"};
  EXPECT_TRUE(store_->remove(keys, {}).is(ErrorKind::kUnavailable));
  EXPECT_EQ(stored("k"), std::nullopt);
}

TEST_F(FaultyStoreTest, LateApplyOutlivesTheCaller) {
  make(Fault::kLateApply, Operation::kPut);
  {
    std::string text = "late";  // The caller's bytes are gone when the put happens.
    EXPECT_EQ(create("k", text)->outcome, PutOutcome::kUnknown);
    std::ranges::fill(text, '?');
  }
  EXPECT_EQ(stored("k"), std::nullopt);
  store_.reset();
  EXPECT_EQ(stored("k"), "late");

  make(Fault::kLateApply, Operation::kRemove);
  const std::vector<std::string> keys = {"k"};
  EXPECT_TRUE(store_->remove(keys, {}).is(ErrorKind::kUnavailable));
  EXPECT_EQ(stored("k"), "late");
  store_.reset();
  EXPECT_EQ(stored("k"), std::nullopt);
}

TEST_F(FaultyStoreTest, ALateCreateKeepsItsCondition) {
  make(Fault::kLateApply, Operation::kPut);
  EXPECT_EQ(create("k", "late")->outcome, PutOutcome::kUnknown);
  write("k", as_bytes("faster"));
  store_.reset();
  EXPECT_EQ(stored("k"), "faster");
}

TEST_F(FaultyStoreTest, DoubleApplyAnswersOnceAndActsTwice) {
  bool own_create_looked_foreign = false;
  bool came_back = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    make(Fault::kDoubleApply, Operation::kPut, seed);
    const auto reply = create("k", "a");
    EXPECT_EQ(stored("k"), "a");
    const std::vector<std::string> keys = {"k"};
    ASSERT_TRUE(memory_.remove(keys, {}).is_ok());
    store_.reset();
    if (reply->outcome == PutOutcome::kConditionFailed) {
      own_create_looked_foreign = true;
      EXPECT_EQ(stored("k"), std::nullopt);
    } else {
      EXPECT_EQ(reply->outcome, PutOutcome::kApplied);
      came_back = true;
      EXPECT_EQ(stored("k"), "a");
    }
    ASSERT_TRUE(memory_.remove(keys, {}).is_ok());
  }
  EXPECT_TRUE(own_create_looked_foreign);
  EXPECT_TRUE(came_back);
}

TEST_F(FaultyStoreTest, ASecondRemoveTakesWhatCameBetween) {
  write("k", as_bytes("a"));
  make(Fault::kDoubleApply, Operation::kRemove);
  const std::vector<std::string> keys = {"k"};
  EXPECT_TRUE(store_->remove(keys, {})->front().is_ok());
  write("k", as_bytes("b"));
  store_.reset();
  EXPECT_EQ(stored("k"), std::nullopt);
}

TEST_F(FaultyStoreTest, ShortBodyContradictsTheSize) {
  const Bytes bytes = random_bytes(1000, 1);
  write("k", bytes);
  make(Fault::kShortBody, Operation::kGet);
  const ObjectData data = read("k", {.offset = 100, .length = 200});
  EXPECT_LT(data.bytes.size(), 200U);
  EXPECT_EQ(data.object_size_bytes, 1000U);
  EXPECT_TRUE(std::ranges::equal(data.bytes, ByteSpan(bytes).subspan(100, data.bytes.size())));
}

TEST_F(FaultyStoreTest, WrongRangeHasTheRightLength) {
  const Bytes bytes = random_bytes(1000, 1);
  write("k", bytes);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    make(Fault::kWrongRange, Operation::kGet, seed);
    const ObjectData data = read("k", {.offset = 100, .length = 200});
    EXPECT_EQ(data.bytes.size(), 200U);
    EXPECT_FALSE(std::ranges::equal(data.bytes, ByteSpan(bytes).subspan(100, 200)));
    EXPECT_FALSE(std::ranges::search(bytes, data.bytes).empty());
    EXPECT_EQ(store_->injected(Fault::kWrongRange), 1U);
  }
  // With one other place it is that place.
  EXPECT_TRUE(std::ranges::equal(read("k", {.offset = 0, .length = 999}).bytes,
                                 ByteSpan(bytes).subspan(1)));
  EXPECT_EQ(store_->injected(Fault::kWrongRange), 2U);
  // All of the object has no other place; the fault leaves it alone.
  EXPECT_EQ(read("k", {}).bytes, bytes);
  EXPECT_EQ(store_->injected(Fault::kWrongRange), 2U);
}

TEST_F(FaultyStoreTest, BitFlipChangesOneBit) {
  const Bytes bytes = random_bytes(1000, 1);
  write("k", bytes);
  write("empty", {});
  make(Fault::kBitFlip, Operation::kGet);
  const ObjectData data = read("k", {});
  int wrong_bits = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    wrong_bits += std::popcount(std::to_integer<unsigned>(data.bytes[i] ^ bytes[i]));
  }
  EXPECT_EQ(wrong_bits, 1);
  EXPECT_TRUE(read("empty", {}).bytes.empty());
  EXPECT_EQ(store_->injected(Fault::kBitFlip), 1U);
}

TEST_F(FaultyStoreTest, ConflictMeetsOnlyConditionalPuts) {
  make(Fault::kConflict409, Operation::kPut);
  EXPECT_TRUE(create("k", "a").is(ErrorKind::kConflict));
  EXPECT_EQ(stored("k"), std::nullopt);
  ASSERT_TRUE(put_bytes(*store_, "k", as_bytes("b"), PutCondition::none(), {}).is_ok());
  EXPECT_EQ(stored("k"), "b");
  EXPECT_EQ(store_->injected(Fault::kConflict409), 1U);
}

TEST_F(FaultyStoreTest, AnErrorOfAPutMeansNotAppliedAndUnknownMeansEither) {
  for (const Fault fault : {Fault::kThrottled429, Fault::kServerError503, Fault::kErrorInsideOk}) {
    int errors = 0;
    int applied = 0;
    int not_applied = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      make(fault, Operation::kPut, seed);
      const auto key = "k" + std::to_string(seed) + "-" + std::string(to_string(fault));
      const auto reply = create(key, "a");
      if (!reply.is_ok()) {
        EXPECT_TRUE(reply.is(ErrorKind::kUnavailable));
        EXPECT_EQ(stored(key), std::nullopt);
        ++errors;
        continue;
      }
      EXPECT_EQ(reply->outcome, PutOutcome::kUnknown);
      ++(stored(key) ? applied : not_applied);
    }
    EXPECT_EQ(errors > 0, fault != Fault::kErrorInsideOk) << to_string(fault);
    EXPECT_EQ(applied > 0, fault != Fault::kThrottled429) << to_string(fault);
    EXPECT_EQ(not_applied > 0, fault == Fault::kErrorInsideOk) << to_string(fault);
  }
}

TEST_F(FaultyStoreTest, ErrorsInsideARemovalAreToldKeyByKey) {
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e"};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const std::string& key : keys) write(key, as_bytes("x"));
    make(Fault::kErrorInsideOk, Operation::kRemove, seed);
    const auto replies = store_->remove(keys, {});
    ASSERT_TRUE(replies.is_ok());
    int failed = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool stays = !(*replies)[i].is_ok();
      EXPECT_EQ(stored(keys[i]).has_value(), stays) << keys[i];
      failed += stays;
    }
    EXPECT_GT(failed, 0);
    EXPECT_LT(failed, 5);
  }
}

TEST_F(FaultyStoreTest, TheScriptCountsEachOperationByItself) {
  const auto plan = FaultPlan::make({.script = {{{Operation::kPut, 1}, Fault::kLostReply}}});
  store_ = std::make_unique<FaultyStore>(memory_, *runtime_, plan.value());
  EXPECT_TRUE(create("bad key", "x").is(ErrorKind::kInvalid));  // Counts for nothing.
  EXPECT_EQ(create("a", "x")->outcome, PutOutcome::kApplied);
  EXPECT_TRUE(store_->get("a", {}, {}).is_ok());
  EXPECT_EQ(create("b", "x")->outcome, PutOutcome::kUnknown);
  EXPECT_EQ(create("c", "x")->outcome, PutOutcome::kApplied);
}

}  // namespace
}  // namespace batchloom::objstore
