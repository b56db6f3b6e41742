// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/retrying_store.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/faulty_store.h"
#include "batchloom/objstore/forwarding_store_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/metered_store.h"

namespace batchloom::objstore {
namespace {

constexpr int kAttempts = 4;

/// RetryingStore over MeteredStore (which counts the attempts) over FaultyStore over MemoryStore.
class RetryingStoreTest : public testing::Test {
 protected:
  /// Every call of `operation` meets `fault`.
  void always(Fault fault, Operation operation) { make({.rates = {{fault, operation, 1.0}}}); }
  /// The first `n` calls of `operation` do.
  void first(std::uint64_t n, Fault fault, Operation operation) {
    FaultSettings settings{};
    for (std::uint64_t i = 0; i < n; ++i) settings.script.push_back({{operation, i}, fault});
    make(settings);
  }
  void make(const FaultSettings& settings) {
    faulty_.emplace(memory_, *runtime_, FaultPlan::make(settings).value());
    metered_.emplace(*faulty_, counters_);
    store_ = std::make_unique<RetryingStore>(
        *metered_, *runtime_, counters_,
        RetryOptions{.first_backoff = std::chrono::microseconds(1), .max_attempts = kAttempts});
  }

  std::uint64_t count(const std::string& name) { return counters_.snapshot().at(name); }
  void write(std::string_view key) {
    ASSERT_TRUE(put_bytes(memory_, key, as_bytes("content"), PutCondition::none(), {}).is_ok());
  }
  bool exists(std::string_view key) { return memory_.head(key, {}).value().has_value(); }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  Counters counters_;
  MemoryStore memory_{*runtime_, {.page_size = 1}};
  std::optional<FaultyStore> faulty_;
  std::optional<MeteredStore> metered_;
  std::unique_ptr<RetryingStore> store_;
};

TEST_F(RetryingStoreTest, ReadsAreRepeated) {
  write("k");
  first(3, Fault::kLostReply, Operation::kGet);
  EXPECT_EQ(as_text(store_->get("k", {}, {}).value()->bytes), "content");
  EXPECT_EQ(count("objstore_get_calls"), 4U);
  EXPECT_EQ(count("objstore_retries"), 3U);
  first(3, Fault::kServerError503, Operation::kHead);
  EXPECT_EQ(store_->head("k", {}).value()->size_bytes, 7U);
}

TEST_F(RetryingStoreTest, AFailingReadEndsAfterTheLastAttempt) {
  always(Fault::kThrottled429, Operation::kGet);
  const auto data = store_->get("k", {}, {});
  EXPECT_TRUE(data.is(ErrorKind::kUnavailable));
  EXPECT_NE(data.status().message().find("4 attempts"), std::string_view::npos);
  EXPECT_EQ(count("objstore_get_calls"), 4U);
}

TEST_F(RetryingStoreTest, AMissingKeyIsNotRepeated) {
  make({});
  EXPECT_EQ(store_->get("missing", {}, {}).value(), std::nullopt);
  EXPECT_EQ(count("objstore_get_calls"), 1U);
}

TEST_F(RetryingStoreTest, AListingGoesOnAtThePageThatFailed) {
  for (const std::string_view key : {"a", "b", "c"}) write(key);
  make({.script = {{{Operation::kList, 1}, Fault::kLostReply},
                   {{Operation::kList, 4}, Fault::kLostRequest}}});
  const auto listing = store_->list({}, {}, {});
  std::set<std::string> shown;
  for (;;) {
    const auto page = (*listing)->next_page({});
    ASSERT_TRUE(page.is_ok());
    if (page->empty()) break;
    EXPECT_TRUE(shown.insert(page->front().key).second);
  }
  EXPECT_EQ(shown.size(), 3U);
  EXPECT_EQ(count("objstore_list_calls"), 6U);
}

TEST_F(RetryingStoreTest, AConditionalPutIsNeverRepeated) {
  const PutCondition conditions[] = {PutCondition::absent(), PutCondition::matches({"tag"})};
  for (const Fault fault : {Fault::kLostRequest, Fault::kLostReply, Fault::kConflict409,
                            Fault::kThrottled429, Fault::kServerError503, Fault::kErrorInsideOk}) {
    always(fault, Operation::kPut);
    for (const PutCondition& condition : conditions) {
      const std::uint64_t before = count("objstore_put_calls");
      const auto reply = put_bytes(*store_, "k", as_bytes("x"), condition, {});
      EXPECT_TRUE(!reply.is_ok() || reply->outcome == PutOutcome::kUnknown);
      EXPECT_EQ(count("objstore_put_calls"), before + 1) << to_string(fault);
    }
  }
}

TEST_F(RetryingStoreTest, AnUnconditionalPutIsRepeatedUnlessItMayStillArrive) {
  first(2, Fault::kThrottled429, Operation::kPut);
  const auto reply = put_bytes(*store_, "k", as_bytes("x"), PutCondition::none(), {});
  EXPECT_EQ(reply->outcome, PutOutcome::kApplied);
  EXPECT_EQ(count("objstore_put_calls"), 3U);

  first(1, Fault::kLostReply, Operation::kPut);
  EXPECT_EQ(put_bytes(*store_, "k", as_bytes("x"), PutCondition::none(), {})->outcome,
            PutOutcome::kUnknown);
  EXPECT_EQ(count("objstore_put_calls"), 4U);
}

TEST_F(RetryingStoreTest, RemovalsRepeatOnlyTheKeysThatFailed) {
  const std::vector<std::string> keys = {"a", "b", "c", "d"};
  for (const std::string& key : keys) write(key);
  first(1, Fault::kErrorInsideOk, Operation::kRemove);
  const auto replies = store_->remove(keys, {});
  ASSERT_TRUE(replies.is_ok());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_TRUE((*replies)[i].is_ok());
    EXPECT_FALSE(exists(keys[i]));
  }
  EXPECT_EQ(count("objstore_remove_calls"), 2U);
  EXPECT_EQ(count("objstore_remove_keys"), 4U + 2U);
}

TEST_F(RetryingStoreTest, RemovalsThatAreRefusedAreNotRepeated) {
  class Refusing final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                       const CallOptions&) override {
      std::vector<Status> replies;
      for (const std::string& key : keys) {
        ++asked[key];
        replies.push_back(key == "busy" && asked[key] == 1 ? Status::unavailable("later")
                          : key == "locked"                ? Status::invalid("no permission")
                                                           : Status::ok());
      }
      return replies;
    }
    std::map<std::string, int> asked;
  };
  Refusing refusing(memory_);
  RetryingStore store(refusing, *runtime_, counters_,
                      {.first_backoff = std::chrono::microseconds(1)});
  const std::vector<std::string> keys = {"locked", "busy", "open"};
  const auto replies = store.remove(keys, {}).value();
  EXPECT_TRUE(replies.at(0).is(ErrorKind::kInvalid));
  EXPECT_TRUE(replies.at(1).is_ok());
  EXPECT_TRUE(replies.at(2).is_ok());
  EXPECT_EQ(refusing.asked, (std::map<std::string, int>{{"busy", 2}, {"locked", 1}, {"open", 1}}));
}

TEST_F(RetryingStoreTest, RemovalsThatFailToTheEndAreValues) {
  write("a");
  always(Fault::kErrorInsideOk, Operation::kRemove);
  const std::vector<std::string> keys = {"a"};
  const auto replies = store_->remove(keys, {});
  ASSERT_TRUE(replies.is_ok());
  EXPECT_TRUE(replies->front().is(ErrorKind::kUnavailable));
  EXPECT_EQ(count("objstore_remove_calls"), 4U);

  always(Fault::kLostRequest, Operation::kRemove);
  EXPECT_TRUE(store_->remove(keys, {}).is(ErrorKind::kUnavailable));
}

TEST_F(RetryingStoreTest, AShortBodyIsReadAgainAndThenCorruption) {
  write("k");
  first(3, Fault::kShortBody, Operation::kGet);
  EXPECT_EQ(as_text(store_->get("k", {.offset = 3, .length = 100}, {}).value()->bytes), "tent");
  EXPECT_EQ(count("objstore_get_calls"), 4U);

  always(Fault::kShortBody, Operation::kGet);
  const auto data = store_->get("k", {.offset = 3, .length = 100}, {});
  EXPECT_TRUE(data.is(ErrorKind::kCorruption));
  EXPECT_NE(data.status().message().find("'k'"), std::string_view::npos);
  EXPECT_EQ(count("objstore_get_calls"), 8U);
}

TEST_F(RetryingStoreTest, AShortBodyWithoutTimeToRepeatIsNotYetCorruption) {
  write("k");
  always(Fault::kShortBody, Operation::kGet);
  RetryingStore store(*metered_, *runtime_, counters_, {.retry_burst = 1});
  EXPECT_TRUE(store.get("k", {}, {}).is(ErrorKind::kUnavailable));
}

}  // namespace
}  // namespace batchloom::objstore
