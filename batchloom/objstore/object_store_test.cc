// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/object_store.h"

#include <gtest/gtest.h>

namespace batchloom::objstore {
namespace {

TEST(ValidateKey, AcceptsAllKeysOfTheBatchStore) {
  for (const std::string_view key :
       {"FORMAT", "m/00000000000000000001", "s/00000000000000000007-0-0123456789abcdef",
        "d/7f/main.000000000001.000000000002.7f00000000000000.tgb", "pin/eval/live", "gc/floor",
        "a", "A_b-c.d/e..f"}) {
    EXPECT_TRUE(validate_key(key).is_ok()) << key;
  }
  EXPECT_TRUE(validate_key(std::string(1000, 'k')).is_ok());
}

TEST(ValidateKey, RefusesAndSaysWhy) {
  struct Case {
    std::string key;
    std::string_view why;
  };
  for (const auto& [key, why] :
       {Case{"", "empty"}, Case{"/a", "empty segment"}, Case{"a/", "empty segment"},
        Case{"a//b", "empty segment"}, Case{".a", "dot"}, Case{"a/.b", "dot"},
        Case{"a/../b", "dot"}, Case{"a b", "0x20"}, Case{"a\xff", "0xff"},
        Case{std::string(1001, 'k'), "1001 bytes"}}) {
    const Status status = validate_key(key);
    EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << key;
    EXPECT_NE(status.message().find(why), std::string_view::npos) << status.to_string();
  }
}

}  // namespace
}  // namespace batchloom::objstore
