// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/open_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"

namespace batchloom::store {
namespace {

using testing::HasSubstr;

TEST(StoreUrl, NamesAFolder) {
  for (const char* url : {"./dir", "../dir", "/abs/dir", ".", "..", "/", "./a b"}) {
    const auto folder = parse_store_url(url);
    ASSERT_TRUE(folder.is_ok()) << folder.status().to_string();
    EXPECT_EQ(*folder, url);
  }
  EXPECT_EQ(*parse_store_url("file:///abs/dir"), "/abs/dir");
}

TEST(StoreUrl, RefusesTheRestAndSaysWhatWorks) {
  struct Case {
    const char* url;
    const char* reason;
  };
  for (const auto& [url, reason] :
       {Case{"s3://bucket/prefix", "not supported yet"}, Case{"dir", "did you mean ./dir?"},
        Case{"file://host/dir", "no host"}, Case{"file://", "absolute path"},
        Case{"file:///a%20b", "%-escapes"}, Case{"http://x/y", "unknown kind of URL"},
        Case{"", "not a URL"}, Case{".hidden", "did you mean ./.hidden?"}}) {
    const Status status = parse_store_url(url).status();
    EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << url;
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
    EXPECT_THAT(std::string(status.message()), HasSubstr("./dir, ../dir, /abs/dir or file:///"));
  }
}

TEST(OpenStore, NamesAMissingFolder) {
  const auto runtime = make_real_runtime();
  const auto store =
      OpenStore::open({.url = "./no-such-folder", .folder = "./no-such-folder"}, *runtime);
  EXPECT_TRUE(store.is(ErrorKind::kNotFound));
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("./no-such-folder"));
}

}  // namespace
}  // namespace batchloom::store
