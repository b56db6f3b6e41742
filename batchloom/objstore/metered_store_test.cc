// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/metered_store.h"

#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/faulty_store.h"
#include "batchloom/objstore/memory_store.h"

namespace batchloom::objstore {
namespace {

class MeteredStoreTest : public testing::Test {
 protected:
  std::uint64_t count(const std::string& name) { return counters_.snapshot().at(name); }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  MemoryStore memory_{*runtime_, {.page_size = 2}};
  Counters counters_;
  MeteredStore store_{memory_, counters_};
};

TEST_F(MeteredStoreTest, CountsCallsBytesAndOutcomes) {
  const std::vector<ByteSpan> parts = {as_bytes("abc"), as_bytes("de")};
  ASSERT_TRUE(store_.put("k", parts, PutCondition::absent(), {}).is_ok());
  ASSERT_TRUE(store_.put("k", parts, PutCondition::absent(), {}).is_ok());
  ASSERT_TRUE(store_.get("k", {.offset = 1, .length = 3}, {}).is_ok());
  ASSERT_TRUE(store_.get("missing", {}, {}).is_ok());
  ASSERT_TRUE(store_.head("missing", {}).is_ok());
  EXPECT_EQ(count("objstore_put_calls"), 2U);
  EXPECT_EQ(count("objstore_put_bytes"), 10U);
  EXPECT_EQ(count("objstore_put_applied"), 1U);
  EXPECT_EQ(count("objstore_put_condition_failed"), 1U);
  EXPECT_EQ(count("objstore_get_calls"), 2U);
  EXPECT_EQ(count("objstore_get_bytes"), 3U);
  EXPECT_EQ(count("objstore_get_missing"), 1U);
  EXPECT_EQ(count("objstore_head_calls"), 1U);
  EXPECT_EQ(count("objstore_head_missing"), 1U);
  EXPECT_EQ(count("objstore_get_errors"), 0U);
}

TEST_F(MeteredStoreTest, CountsPagesAndKeys) {
  for (const std::string_view key : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(put_bytes(store_, key, {}, PutCondition::none(), {}).is_ok());
  }
  const auto listing = store_.list({}, {}, {});
  ASSERT_TRUE(listing.is_ok());
  while (!(*listing)->next_page({}).value().empty()) continue;
  EXPECT_EQ(count("objstore_list_calls"), 3U);  // Two keys, two keys, the end.
  EXPECT_EQ(count("objstore_list_keys"), 4U);
}

TEST_F(MeteredStoreTest, CountsErrorsAndFailures) {
  const auto plan = FaultPlan::make({.script = {{{Operation::kGet, 0}, Fault::kLostRequest},
                                                {{Operation::kPut, 0}, Fault::kLostReply},
                                                {{Operation::kRemove, 0}, Fault::kErrorInsideOk}}});
  FaultyStore faulty(memory_, *runtime_, plan.value());
  MeteredStore store(faulty, counters_);
  EXPECT_TRUE(store.get("k", {}, {}).is(ErrorKind::kUnavailable));
  EXPECT_TRUE(store.get("bad key", {}, {}).is(ErrorKind::kInvalid));
  ASSERT_TRUE(put_bytes(store, "k", {}, PutCondition::none(), {}).is_ok());
  const std::vector<std::string> keys = {"k"};
  ASSERT_TRUE(store.remove(keys, {}).is_ok());
  EXPECT_EQ(count("objstore_get_errors"), 2U);
  EXPECT_EQ(count("objstore_get_unavailable"), 1U);
  EXPECT_EQ(count("objstore_put_unknown"), 1U);
  EXPECT_EQ(count("objstore_remove_calls"), 1U);
  EXPECT_EQ(count("objstore_remove_keys"), 1U);
  EXPECT_EQ(count("objstore_remove_failed"), 1U);
}

}  // namespace
}  // namespace batchloom::objstore
