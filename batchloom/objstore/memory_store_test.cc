// SPDX-License-Identifier: Apache-2.0
// What only this store promises; the rest is in conformance_test.cc.
#include "batchloom/objstore/memory_store.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "batchloom/base/real_runtime.h"

namespace batchloom::objstore {
namespace {

MemoryObject object(std::string_view text) {
  return make_memory_object(to_bytes(text));
}

TEST(MemoryObjects, AppliesPutsByTheirCondition) {
  MemoryObjects objects;
  const auto missing = objects.apply_put("k", object("a"), PutCondition::matches(object("a").etag));
  EXPECT_EQ(missing.outcome, PutOutcome::kConditionFailed);
  EXPECT_EQ(objects.find("k"), nullptr);

  const auto created = objects.apply_put("k", object("a"), PutCondition::absent());
  EXPECT_EQ(created.outcome, PutOutcome::kApplied);
  EXPECT_EQ(created.etag, object("a").etag);
  EXPECT_EQ(objects.apply_put("k", object("b"), PutCondition::absent()).outcome,
            PutOutcome::kConditionFailed);
  EXPECT_EQ(as_text(*objects.find("k")->bytes), "a");

  EXPECT_EQ(objects.apply_put("k", object("c"), PutCondition::matches(*created.etag)).outcome,
            PutOutcome::kApplied);
  EXPECT_EQ(as_text(*objects.find("k")->bytes), "c");
}

TEST(MemoryObjects, TagsNameTheContent) {
  EXPECT_EQ(object("a").etag, object("a").etag);
  EXPECT_NE(object("a").etag, object("b").etag);
}

TEST(MemoryObjects, ErasesOnce) {
  MemoryObjects objects;
  objects.apply_put("k", object("a"), PutCondition::none());
  EXPECT_TRUE(objects.erase("k"));
  EXPECT_FALSE(objects.erase("k"));
  EXPECT_EQ(objects.size(), 0U);
}

TEST(MemoryObjects, ReadersKeepTheBytesTheyHold) {
  MemoryObjects objects;
  objects.apply_put("k", object("old"), PutCondition::none());
  const MemoryObject held = *objects.find("k");
  objects.apply_put("k", object("new"), PutCondition::none());
  EXPECT_EQ(as_text(*held.bytes), "old");
}

TEST(MemoryObjects, PagesAreDeliberatelyUnsortedAndComplete) {
  MemoryObjects objects;
  for (char c = 'a'; c <= 'z'; ++c) {
    objects.apply_put(std::string("p/") + c, object("x"), PutCondition::none());
  }
  objects.apply_put("q/a", object("x"), PutCondition::none());
  MemoryObjects::PageQuery query{
      .prefix = "p/", .start_after = "p/c", .last_shown = {}, .limit = 5};
  std::vector<std::string> keys;
  for (;;) {
    const auto page = objects.keys_with_prefix(query);
    if (page.empty()) break;
    EXPECT_LE(page.size(), 5U);
    for (const ListedObject& shown : page) keys.push_back(shown.key);
    query.last_shown = keys.back();
  }
  EXPECT_FALSE(std::ranges::is_sorted(keys));
  std::ranges::sort(keys);
  EXPECT_EQ(keys.size(), 23U);
  EXPECT_EQ(keys.front(), "p/d");
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST(MemoryObjects, APageGoesOnAfterAKeyThatIsGone) {
  MemoryObjects objects;
  for (char c = 'a'; c <= 'h'; ++c) {
    objects.apply_put(std::string(1, c), object("x"), PutCondition::none());
  }
  MemoryObjects::PageQuery query{.prefix = {}, .start_after = {}, .last_shown = {}, .limit = 4};
  const auto first = objects.keys_with_prefix(query);
  query.last_shown = first.back().key;
  const auto expected = objects.keys_with_prefix(query);
  for (const ListedObject& shown : first) objects.erase(shown.key);
  const auto second = objects.keys_with_prefix(query);
  ASSERT_EQ(second.size(), 4U);
  for (std::size_t i = 0; i < second.size(); ++i) EXPECT_EQ(second[i].key, expected[i].key);
}

TEST(ReadRange, DoesNotOverflow) {
  const auto data = read_range("k", object("abc"), {.offset = 1, .length = UINT64_MAX});
  ASSERT_TRUE(data.is_ok());
  EXPECT_EQ(as_text(data->bytes), "bc");
  EXPECT_TRUE(read_range("k", object("abc"), {.offset = 4, .length = 0}).is(ErrorKind::kInvalid));
}

TEST(MemoryStore, ReadsIntoTheMemoryOfItsCaller) {
  const auto runtime = make_real_runtime();
  MemoryStore store(*runtime);
  ASSERT_TRUE(put_bytes(store, "k", as_bytes("0123456789"), PutCondition::absent(), {}).is_ok());
  Bytes storage(64);
  const std::byte* const memory = storage.data();
  const auto data = store.get_into(std::move(storage), "k", {2, 3}, {}).value();
  EXPECT_EQ(as_text(data->bytes), "234");
  EXPECT_EQ(data->bytes.data(), memory);
  EXPECT_EQ(as_text(store.get_into(Bytes(1), "k", {2, 3}, {}).value()->bytes), "234");
}

}  // namespace
}  // namespace batchloom::objstore
